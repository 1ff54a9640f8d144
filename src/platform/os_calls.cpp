#include "base/schedule.h"
#include "platform/platform.h"

namespace rh::platform {

namespace {

constinit std::atomic<size_t> g_counts[static_cast<size_t>(OsCall::count)] = {};

}  // namespace

const char* os_call_name(OsCall kind) {
  static constexpr const char* kNames[] = {"reserve", "release", "commit", "purge", "move",
                                           "guard",   "thread",  "wait",   "wake"};
  static_assert(sizeof(kNames) / sizeof(kNames[0]) == static_cast<size_t>(OsCall::count));
  return kNames[static_cast<size_t>(kind)];
}

size_t os_calls(OsCall kind) { return g_counts[static_cast<size_t>(kind)].load(std::memory_order_relaxed); }

void count_os_call(OsCall kind) {
  // A helper is started while the fake holds its own lock.
  if (kind != OsCall::thread) schedule_point();
  g_counts[static_cast<size_t>(kind)].fetch_add(1, std::memory_order_relaxed);
}

}  // namespace rh::platform
