#include "entry/start.h"

#include "base/secret.h"
#include "entry/describe.h"
#include "entry/foreign.h"
#include "entry/options.h"
#include "entry/profiling.h"
#include "hardened/hardened.h"
#include "hardened/zeros.h"
#include "heap/fork.h"
#include "heap/guards.h"
#include "heap/heap.h"
#include "heap/idle.h"
#include "heap/registry.h"
#include "platform/path.h"
#include "platform/platform.h"
#include "platform/report.h"
#include "platform/sinks.h"
#include "profile/profile.h"

namespace rh {

constinit std::atomic<bool> g_started{false};

void start_now() {
  // The first allocation of a process comes from its only thread.
  if (g_started.exchange(true, std::memory_order_relaxed)) return;
  if constexpr (kHardened) {
    for (uint64_t& secret : g_secrets) secret = platform::random_secret();
    hardened::look_at_processor();
    // A function of this file's own: before relocation the address of another file's may not be known.
    idle::let_go_by([](Heap* heap) { hardened::flush(heap); });
  }
  if (platform::is_under_thread_sanitizer() && g_foreign.instead != nullptr) leave_to(g_foreign.instead());
  options::load();
}

namespace {

using Describe = void (*)(Text& text);

void describe_to(const char* path, const char* what, Describe describe) {
  platform::FileWriter file(path);
  if (file.is_open()) {
    Text text(write_to_file, &file);
    describe(text);
    text << '\n';
  }
  if (file.is_whole()) return;
  Text message;
  report(message << what << ' ' << path << ": " << file.refusal());
}

}  // namespace

void begin() {
  start();
  platform::prepare();
  fork::watch();  // a plugin's own heap may first be used by several threads beside a fork
  options::refuse_unknown_variables();
  registry::loaded();
  guards::look_at_faults();
  profiling::begin_listening();
  g_foreign.resolve();
  if (is_left_to_other()) {
    Text message;
    report(message << "this program is built with ThreadSanitizer, which serves malloc itself");
  }
  if (options::verbose()) report_line([](Text& text, const void*) { describe::process(text); }, nullptr);
  if (const char* path = options::doctor_target(); *path != 0) {
    describe_to(path, "REHEAP_DOCTOR", describe::process);
    platform::end_process(0);
  }
}

// A signal's handler may end the process: what the thread was doing then never comes to its end.
static bool is_interrupted() {
  const ThreadToken token = platform::thread_token();
  return g_arena.lock().held_by(token) || registry::lock().held_by(token) || profile::lock().held_by(token);
}

void end() {
  const bool interrupted = is_interrupted();
  profiling::end_with_process(interrupted);
  static constinit std::atomic<bool> ended{false};
  const char* target = options::stats_target();
  if (*target == 0 || ended.exchange(true, std::memory_order_relaxed)) return;
  if (interrupted) {
    Text message;
    return report(message << "REHEAP_STATS: not written, for a signal ended the process within an allocation");
  }
  if (!same_text(target, "1")) {
    Text path;
    expand(target, path);
    return describe_to(path.data(), "REHEAP_STATS", describe::statistics);
  }
  Text text(write_to_error, nullptr);
  describe::statistics(text);
  text << '\n';
}

}  // namespace rh
