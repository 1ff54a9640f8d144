#include "runner/linux/tree.h"

#include <signal.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "runner/linux/clock.h"

namespace runner {

namespace {

constexpr std::size_t kNameLength = 15;  // all that the kernel keeps of a process's name

// Reading the lists of all threads may take this part of the time.
constexpr std::int64_t kThreadsShare = 200;

// A new height of the sum of resident memory is one by more than this part of it.
constexpr std::int64_t kWorthWeighing = 100;

std::string path_of_adopted() { return "task/" + std::to_string(getpid()) + "/children"; }

void increase(Figure& sum, std::int64_t more) { sum = sum.value_or(0) + more; }

}  // namespace

void add(End& sum, const rusage& used) {
  increase(sum.user_us, microseconds(used.ru_utime));
  increase(sum.system_us, microseconds(used.ru_stime));
  increase(sum.minor_faults, used.ru_minflt);
  increase(sum.major_faults, used.ru_majflt);
  increase(sum.voluntary_switches, used.ru_nvcsw);
  increase(sum.involuntary_switches, used.ru_nivcsw);
  sum.peak_rss_kib = std::max(sum.peak_rss_kib.value_or(0), std::int64_t{used.ru_maxrss});
}

Tree::Tree(pid_t command, std::string watched_name, bool with_later)
    : watched_name_(watched_name.substr(0, kNameLength)), with_later_(with_later),
      adopted_(getpid(), path_of_adopted().c_str()), began_ns_(now_ns()) {
  add(command);
}

Sample Tree::look() {
  look_at_known();
  find_children();
  find_children_of_threads();
  return watched_name_.empty() ? figures() : figures_of_watched();
}

void Tree::look_at_known() {
  processes_.remove_if([](Process& process) { return !process.look(); });
}

// The list grows while it is walked, so children of children are found too.
void Tree::find_children() {
  std::vector<pid_t> children;
  add_children(adopted_, children);
  know(children);
  for (const Process& process : processes_) {
    children.clear();
    process.add_children(children);
    know(children);
  }
}

void Tree::find_children_of_threads() {
  if (spent_on_threads_ns_ > (now_ns() - began_ns_) / kThreadsShare) return;
  const std::int64_t before = own_ns();
  std::vector<pid_t> children;
  for (const Process& process : processes_) {
    children.clear();
    if (process.threads > 1) process.add_children_of_threads(children);
    know(children);
  }
  spent_on_threads_ns_ += own_ns() - before;
}

void Tree::know(const std::vector<pid_t>& children) {
  for (pid_t child : children)
    if (!knows(child)) add(child);
}

bool Tree::knows(pid_t process) const {
  return std::any_of(processes_.begin(), processes_.end(), [&](const Process& one) { return one.id == process; });
}

void Tree::add(pid_t process) {
  Process& added = processes_.emplace_back(process);
  if (!added.is_open() || !added.look()) processes_.pop_back();
}

Sample Tree::figures() {
  Sample sums;
  std::int64_t rss = 0, commit = 0, used = reaped_us_, count = 0, threads = 0;
  for (const Process& process : processes_) {
    used += process.own_us + process.children_us;
    if (process.ended) continue;
    rss += process.rss_kib;
    commit += process.commit_kib;
    threads += process.threads;
    count++;
  }
  // What a process used is its parent's only when that has waited for it: no less than before is known meanwhile.
  most_us_ = std::max(most_us_, used);
  sums.cpu_us = most_us_;
  sums.processes = count;
  sums.threads = threads;
  sums.rss_kib = rss;
  sums.commit_kib = commit;
  total_.peak_tree_rss_kib = std::max(total_.peak_tree_rss_kib.value_or(0), rss);
  if (count > 1 && rss > weighed_kib_ + weighed_kib_ / kWorthWeighing) weigh(rss);
  return sums;
}

// What processes share counts once. It is asked for at new heights alone, for it holds them up.
void Tree::weigh(std::int64_t rss_kib) {
  weighed_kib_ = rss_kib;
  std::int64_t sum = 0;
  for (const Process& process : processes_)
    if (!process.ended && process.rss_kib > 0) sum += std::max<std::int64_t>(0, share_of_resident_kib(process.id));
  total_.peak_tree_pss_kib = std::max(total_.peak_tree_pss_kib.value_or(0), sum);
}

Sample Tree::figures_of_watched() {
  Sample sample;
  for (const Process& process : processes_) {
    if (watched_ == 0 && strcasecmp(process.name.c_str(), watched_name_.c_str()) == 0) {
      watched_ = process.id;
      watched_began_ns_ = process.began_ns;
    }
    if (process.ended || !is_watched(process)) continue;
    if (process.id == watched_) remember_watched(process);
    increase(sample.rss_kib, process.rss_kib);
    increase(sample.commit_kib, process.commit_kib);
    increase(sample.cpu_us, process.own_us + process.children_us);
    increase(sample.processes, 1);
    increase(sample.threads, process.threads);
  }
  if (sample.commit_kib) of_watched_.peak_commit_kib = std::max(of_watched_.peak_commit_kib, sample.commit_kib);
  return sample;
}

bool Tree::is_watched(const Process& process) const {
  if (watched_ == 0 || process.id == watched_) return watched_ != 0;
  return with_later_ && std::tie(process.began_ns, process.id) > std::tie(watched_began_ns_, watched_);
}

// In case it is not the runner that waits for it.
void Tree::remember_watched(const Process& process) {
  of_watched_.watched = process.id;
  of_watched_.user_us = process.user_us;
  of_watched_.system_us = process.system_us;
  of_watched_.minor_faults = process.minor_faults;
  of_watched_.major_faults = process.major_faults;
  if (const std::int64_t peak = peak_kib(process.id); peak >= 0) of_watched_.peak_rss_kib = peak;
}

void Tree::ended(pid_t process, const rusage& used) {
  processes_.remove_if([&](const Process& one) { return one.id == process; });
  runner::add(total_, used);
  reaped_us_ += microseconds(used.ru_utime) + microseconds(used.ru_stime);
  if (process != watched_ || watched_ended_) return;
  watched_ended_ = true;
  const Figure commit = of_watched_.peak_commit_kib;
  of_watched_ = End{};
  runner::add(of_watched_, used);
  of_watched_.watched = process;
  of_watched_.peak_commit_kib = commit;
}

bool Tree::has_later() {
  look_at_known();
  find_children();
  return std::any_of(processes_.begin(), processes_.end(), [&](const Process& one) { return is_watched(one); });
}

End Tree::used() const { return watched_name_.empty() ? total_ : of_watched_; }

void Tree::kill_all() {
  look();
  for (const Process& process : processes_) kill(process.id, SIGKILL);
}

std::int64_t Tree::living() {
  look_at_known();
  find_children();
  return std::count_if(processes_.begin(), processes_.end(), [](const Process& process) { return !process.ended; });
}

}  // namespace runner
