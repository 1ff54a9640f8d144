#include "runner/run.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>

#include "runner/failure.h"
#include "runner/linux/call_counter.h"
#include "runner/linux/child.h"
#include "runner/linux/clock.h"
#include "runner/linux/counters.h"
#include "runner/linux/departed.h"
#include "runner/linux/perf.h"
#include "runner/linux/signals.h"
#include "runner/linux/tracer.h"
#include "runner/linux/tree.h"

namespace runner {

namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// A look at a tree of thousands of processes takes long. Then there are fewer: they take this part of one processor.
constexpr std::int64_t kSamplerShare = 50;

// Where processes are accounted for no time is measured, and what they hold may be looked at more.
constexpr std::int64_t kHoldingsShare = 4;

constexpr std::int64_t kDrainInterval = kSecond / 10;

// For Windows, and so for Wine's launcher, a process has ended a moment before it has for Linux; and who is killed
// needs a moment to die.
constexpr std::int64_t kLate = 2 * kSecond;
constexpr std::int64_t kOthersLate = kSecond / 2;  // who began after a watched process may also mean to stay
constexpr int kTickMs = 4;

// Some files are kept open for each process. The command, made before, has the limit it was given.
void allow_many_files() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Who started the runner reads what it says. Where that goes into a pipe, the pipe tells when nobody does any more.
int pipe_to_reader() {
  struct stat what;
  return fstat(STDERR_FILENO, &what) == 0 && S_ISFIFO(what.st_mode) ? STDERR_FILENO : -1;
}

class Run {
 public:
  Run(const Options& options, Lines& lines)
      : options_(options), lines_(lines), child_(options, options.count_calls ? CallCounter::install_filter : nullptr),
        tree_(child_.id(), options.watch, options.account), counters_(child_.id(), options.events) {
    allow_many_files();
    if (options.count_calls)
      count_calls();
    else if (options.account && options.watch.empty())
      account();
    else if (options.account)
      departed_.emplace();
    if (options.profile_hz > 0) begin_profile();
  }

  void go() {
    const std::int64_t own_before = own_ns();
    child_.go();
    child_.confirm(options_);
    lines_.start(child_.id());
    follow();
    wait_for_late();
    finish((own_ns() - own_before) / 1000);
  }

 private:
  std::int64_t started() const { return child_.started_ns(); }

  void count_calls() {
    auto counter = std::make_unique<CallCounter>(child_.id());
    tracer_ = counter_ = counter.get();
    accountant_ = std::move(counter);
  }

  void account() {
    accountant_ = std::make_unique<Accountant>(child_.id());
    tracer_ = accountant_.get();
  }

  void begin_profile() {
    if (!options_.profile_by_stops && Perf::allowed(options_.profile_hz)) {
      perf_.emplace(child_.id(), options_.profile_hz);
      return;
    }
    stopper_ = std::make_unique<Stopper>(child_.id(), options_.profile_hz);
    tracer_ = stopper_.get();
  }

  void follow() {
    const std::int64_t interval = options_.sample_ms * kMillisecond;
    next_look_ = interval > 0 ? started() + interval : kNever;
    deadline_ = options_.timeout ? started() + static_cast<std::int64_t>(*options_.timeout * double(kSecond)) : kNever;
    next_drain_ = perf_ || stopper_ ? started() : kNever;
    while (!ended_ns_) {
      wait_for_news();
      if (ended_ns_) return;
      if (now_ns() >= deadline_) time_out();
      if (now_ns() >= next_look_) look(interval);
      if (now_ns() >= next_drain_) drain_samplers();
    }
  }

  void wait_for_news() {
    const std::int64_t next = std::min({next_look_, next_drain_, deadline_});
    const std::int64_t left = std::max<std::int64_t>(0, next - now_ns());
    const timespec limit{left / kSecond, left % kSecond};
    pollfd news[] = {{signals_.file(), POLLIN, 0}, {to_reader_, 0, 0}};
    if (ppoll(news, std::size(news), next == kNever ? nullptr : &limit, nullptr) <= 0) return;
    if ((news[1].revents & POLLERR) != 0) left_alone();
    const std::int64_t now = now_ns();
    while (int number = signals_.next()) {
      if (number == SIGCHLD) {
        reap(now);
      } else {
        stopped_ = true;
        child_.signal(number);
      }
    }
  }

  // Sees off whoever ended: the command, and those the runner has adopted. A tracer sees every end of a thread; then
  // only the command's is reckoned, in which are those it has waited for.
  void reap(std::int64_t now) {
    int status;
    rusage used;
    for (pid_t ended; (ended = wait4(departed_ ? departed_->next() : -1, &status, WNOHANG | __WALL, &used)) > 0;) {
      if (departed_) departed_->ended(ended, used);
      if (WIFSTOPPED(status)) {
        tracer_->stopped(ended, status);
        continue;
      }
      if (tracer_) tracer_->ended(ended);
      if (!tracer_ || ended == child_.id()) tree_.ended(ended, used);
      if (ended != child_.id()) continue;
      ended_ns_ = now;
      status_ = status;
    }
  }

  void time_out() {
    timed_out_ = true;
    kill_all();
  }

  // Nobody is left to end the command, or to want its figures.
  void left_alone() {
    to_reader_ = -1;
    stopped_ = true;
    kill_all();
  }

  void kill_all() {
    killed_ = true;
    deadline_ = kNever;
    child_.signal(SIGKILL);
    tree_.kill_all();
  }

  void look(std::int64_t interval) {
    const std::int64_t began = now_ns(), own_before = own_ns();
    Sample sample = tree_.look();
    sample.t_us = (began - started()) / 1000;
    if (sample.processes.value_or(0) > 0) lines_.sample(sample);
    const std::int64_t cost = own_ns() - own_before;
    next_look_ = std::max(next_look_ + interval, now_ns() + cost * kSamplerShare);
    if (accountant_) look_at_holdings();
  }

  void look_at_holdings() {
    const std::int64_t own_before = own_ns();
    accountant_->look();
    next_look_ = std::max(next_look_, now_ns() + (own_ns() - own_before) * kHoldingsShare);
  }

  void drain_samplers() {
    if (perf_) perf_->drain();
    if (stopper_) stopper_->tick();
    next_drain_ = now_ns() + (stopper_ ? stopper_->interval_ns() : kDrainInterval);
  }

  bool waits_for_late(std::int64_t waited) {
    if (killed_) return tree_.living() > 0;
    return tree_.waits_for_watched() || (departed_ && waited < kOthersLate && tree_.has_later());
  }

  void wait_for_late() {
    const std::int64_t began = now_ns();
    while (waits_for_late(now_ns() - began) && now_ns() - began < kLate) {
      const timespec tick{0, kTickMs * kMillisecond};
      nanosleep(&tick, nullptr);
      if (killed_) tree_.kill_all();  // also who was started meanwhile
      reap(0);
    }
  }

  void finish(std::int64_t sampler_us) {
    if (perf_) lines_.profile(perf_->finish());
    if (stopper_) lines_.profile(stopper_->finish());
    if (!options_.events.empty()) lines_.counters(counters_.counts());
    if (counter_) tell_calls();
    if (accountant_) lines_.programs(accountant_->finish());
    if (departed_) lines_.programs(departed_->programs());
    End end = used();
    end.wall_us = (*ended_ns_ - started()) / 1000;
    // A peak that is no more than what the process was born with says nothing about the command.
    end.floor_rss_kib = child_.floor_kib();
    if (end.peak_rss_kib.value_or(0) <= child_.floor_kib()) end.peak_rss_kib.reset();
    if (WIFEXITED(status_)) end.exit = WEXITSTATUS(status_);
    if (WIFSIGNALED(status_)) end.signal = WTERMSIG(status_);
    end.timed_out = timed_out_;
    end.stopped = stopped_;
    if (const std::int64_t left = tree_.living(); left > 0) end.left = left;
    end.sampler_us = sampler_us;
    lines_.end(end);
  }

  // What was sampled of a watched process is there as well when it has been waited for.
  End used() {
    const End sampled = tree_.used();
    std::optional<End> exact = departed_ ? departed_->used_since(tree_.watched_name()) : std::nullopt;
    if (!exact) return sampled;
    exact->peak_commit_kib = sampled.peak_commit_kib;
    return *exact;
  }

  void tell_calls() {
    const auto counts = counter_->counts();
    if (counts.empty())
      std::fputs("reheap-runner: no count of calls: a program was built for another processor\n", stderr);
    else
      lines_.calls(counts);
  }

  const Options& options_;
  Lines& lines_;
  Signals signals_;
  Child child_;
  Tree tree_;
  Counters counters_;
  std::optional<Perf> perf_;
  std::unique_ptr<Stopper> stopper_;
  std::unique_ptr<Accountant> accountant_;
  std::optional<Departed> departed_;
  CallCounter* counter_ = nullptr;  // the accountant, when it also counts
  Tracer* tracer_ = nullptr;        // one of these
  std::int64_t next_look_ = kNever, next_drain_ = kNever, deadline_ = kNever;
  std::optional<std::int64_t> ended_ns_;
  int status_ = 0;
  bool timed_out_ = false, stopped_ = false, killed_ = false;
  int to_reader_ = pipe_to_reader();
};

}  // namespace

void run(const Options& options, Lines& lines) {
  // Who loses its parent becomes a child of the runner, not of init.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (options.account && options.profile_hz > 0)
    throw Failure(kUsage, "--account follows the command, which --profile may do too: ask for one of them");
  for (const std::string& event : options.events)
    if (!Counters::knows(event)) throw Failure(kUsage, "--events knows no '" + event + "'; see reheap-runner --help");
  if (options.modules) throw Failure(kUsage, "--modules is for Windows: leave it out");
  Run(options, lines).go();
}

}  // namespace runner
