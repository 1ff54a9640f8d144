#include "entry/profiling.h"

#include "base/compiler.h"
#include "heap/sampled.h"
#include "heap/watch.h"
#include "platform/path.h"
#include "platform/platform.h"
#include "platform/report.h"
#include "profile/pprof.h"

namespace rh::profiling {

namespace {

RH_RARE_ZEROS constinit OptionPath g_target = {};
constinit std::atomic<uint64_t> g_option_every{profile::kUsualEvery};
constinit uint64_t g_signal = 0;
constinit std::atomic<uint64_t> g_process{0};  // the one that began the profile
constinit std::atomic<uint64_t> g_writing{0};  // the one that is writing it
constinit std::atomic<bool> g_unwritten{false};

bool complain(const char* path, const char* why) {
  Text message;
  message << "profile";
  if (*path != 0) message << ' ' << path;
  report(message << ": " << why);
  return false;
}

// The program may have given the signal another meaning since: then it has that.
void handle_signal() { profile::when_unlocked(toggle); }

}  // namespace

bool set_target(const char* path) { return set_file(path, &g_target); }

bool set_every(uint64_t every) {
  if (every == 0 || every > profile::kMostEvery) return false;
  g_option_every.store(every, std::memory_order_relaxed);
  sampled::set_every(every);
  return true;
}

bool set_signal(uint64_t number) {
  if (number != 0 && !platform::may_listen(number)) return false;
  g_signal = number;
  return true;
}

const char* target() { return g_target.text; }
uint64_t every() { return g_option_every.load(std::memory_order_relaxed); }
uint64_t signal() { return g_signal; }

static void begin(uint64_t every) {
  g_process.store(platform::process_id(), std::memory_order_relaxed);
  g_unwritten.store(true, std::memory_order_relaxed);
  sampled::start(every != 0 ? every : profiling::every());
}

void start(uint64_t every) {
  begin(every);
  watch::look_at_passed();
}

void begin_with_process() {
  if (g_target.text[0] != 0 && g_signal == 0) start(0);
}

void begin_listening() {
  if (g_signal == 0) return;
  if (platform::listen(g_signal, handle_signal)) return;
  Text message;
  report(message << "REHEAP_PROFILE_SIGNAL: the program has another use for that signal");
}

void toggle() {
  if (profile::every() == 0) return begin(0);
  sampled::stop();
  write(nullptr);
}

// A child does not write over its parent's file.
void end_with_process(bool interrupted) {
  if (g_target.text[0] == 0 || !g_unwritten.load(std::memory_order_relaxed)) return;
  const bool is_child = g_process.load(std::memory_order_relaxed) != platform::process_id();
  if (is_child && !has_process_id(g_target.text)) return;
  if (interrupted)
    complain(g_target.text, "not written, for a signal ended the process within an allocation");
  else
    write(nullptr);
}

bool write(const char* path) {
  if (path == nullptr) path = g_target.text;
  if (*path == 0) return complain("", "no file is named: give its path, or REHEAP_PROFILE=FILE");
  if (path == g_target.text) g_unwritten.store(false, std::memory_order_relaxed);
  Text expanded;
  if (!fits(path)) return complain("", "its path is too long");
  expand(path, expanded);
  const uint64_t process = platform::process_id();
  if (g_writing.exchange(process) == process) return complain(expanded.data(), "is being written");
  const char* refused = profile::write(expanded.data());
  g_writing.store(0);
  return refused == nullptr || complain(expanded.data(), refused);
}

}  // namespace rh::profiling
