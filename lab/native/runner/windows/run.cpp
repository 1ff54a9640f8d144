#include "runner/run.h"

#include <windows.h>

#include <algorithm>
#include <atomic>

#include "command.h"
#include "figures.h"
#include "modules.h"
#include "runner/failure.h"
#include "sampler.h"
#include "text.h"

// GCC's start of a program would replace words with stars by the names of files.
extern "C" int _dowildcard;
int _dowildcard = 0;

namespace runner {
namespace {

std::atomic<bool> stopped = false;

// The console sends its signals to the command too. What they do is the command's business, and the runner ends when it
// does.
BOOL WINAPI leave_to_command(DWORD signal) {
  stopped = true;
  // Returning from these would end the runner at once.
  if (signal == CTRL_CLOSE_EVENT || signal == CTRL_LOGOFF_EVENT || signal == CTRL_SHUTDOWN_EVENT) Sleep(INFINITE);
  return TRUE;
}

std::int64_t now_us() {
  static const std::int64_t frequency = [] {
    LARGE_INTEGER each_second;
    QueryPerformanceFrequency(&each_second);
    return each_second.QuadPart;
  }();
  LARGE_INTEGER count;
  QueryPerformanceCounter(&count);
  return count.QuadPart / frequency * 1'000'000 + count.QuadPart % frequency * 1'000'000 / frequency;
}

// Something that is due again and again, or never.
class Due {
 public:
  Due(std::int64_t start, std::int64_t every) : every_(every), next_(start) {}
  bool is(std::int64_t now) const { return every_ > 0 && now >= next_; }
  std::int64_t next() const { return every_ > 0 ? next_ : INT64_MAX; }
  // A time that was missed is not made up for.
  void done(std::int64_t now) { next_ = std::max(next_ + every_, now); }
  void stop() { every_ = 0; }

 private:
  std::int64_t every_, next_;
};

constexpr int kModulesEveryUs = 20'000;

class Measurement {
 public:
  Measurement(const Options& options, Lines& lines)
      : options_(options), lines_(lines), command_(command_after_dashes(GetCommandLineW()), options),
        sampler_(command_.job()), modules_(command_.process()) {}

  void run() {
    lines_.start(command_.id());
    const std::int64_t began = now_us();
    command_.resume();
    watch(began);
    end_.wall_us = now_us() - began;
    finish();
  }

 private:
  // Until the command has ended, or its time is up.
  void watch(std::int64_t began) {
    Due look(began, options_.sample_ms * 1000), stop(began, profile_us());
    Due list(began, options_.modules ? kModulesEveryUs : 0);
    const std::int64_t latest =
        options_.timeout ? began + static_cast<std::int64_t>(*options_.timeout * 1e6) : INT64_MAX;
    for (std::int64_t now = now_us();; now = now_us()) {
      if (look.is(now)) {
        take_look(now - began);
        look.done(now);
      }
      if (stop.is(now)) {
        sampler_.sample();
        stop.done(now);
      }
      if (list.is(now)) modules_.look() ? list.done(now) : list.stop();
      if (now >= latest) return time_out();
      if (command_.wait(until(std::min({look.next(), stop.next(), list.next(), latest})))) return;
    }
  }

  static DWORD until(std::int64_t time) {
    if (time == INT64_MAX) return INFINITE;
    return static_cast<DWORD>(std::max<std::int64_t>((time - now_us() + 999) / 1000, 0));
  }

  int profile_us() const { return options_.profile_hz > 0 ? 1'000'000 / options_.profile_hz : 0; }

  void take_look(std::int64_t at) {
    Sample sample = look_at(command_.job());
    if (!sample.processes) return;
    sample.t_us = at;
    if (sample.rss_kib) end_.peak_tree_rss_kib = std::max(end_.peak_tree_rss_kib.value_or(0), *sample.rss_kib);
    lines_.sample(sample);
  }

  void time_out() {
    end_.timed_out = true;
    command_.end_all();
    command_.wait(INFINITE);
  }

  void finish() {
    add_costs(command_.job(), command_.process(), end_);
    // With the runner's own status for it there is none of the command's.
    if (!end_.timed_out) end_.exit = command_.exit_code();
    end_.stopped = stopped;
    end_.left = static_cast<std::int64_t>(processes_of(command_.job()).size());
    if (options_.profile_hz > 0) lines_.profile({"suspend", options_.profile_hz, sampler_.lost(), sampler_.samples()});
    if (options_.modules) lines_.modules(modules_.seen());
    if (options_.account) lines_.programs(command_.processes());
    lines_.end(end_);
  }

  const Options& options_;
  Lines& lines_;
  Command command_;
  Sampler sampler_;
  ModuleLog modules_;
  End end_;
};

void reject_others(const Options& options) {
  if (options.count_calls) throw Failure(kUsage, "--count-calls is for Linux: nothing here counts them; leave it out");
  if (!options.events.empty()) throw Failure(kUsage, "--events is for Linux: nothing here counts them; leave it out");
  if (!options.watch.empty()) throw Failure(kUsage, "--watch is for programs under Wine, from Linux; leave it out");
  if (command_after_dashes(GetCommandLineW()).empty()) throw Failure(kUsage, "there is no command behind --");
}

}  // namespace

void run(const Options& options, Lines& lines) {
  reject_others(options);
  SetConsoleCtrlHandler(leave_to_command, TRUE);
  Measurement(options, lines).run();
}

}  // namespace runner
