// The clock, bypassing the C library: a program may have interposed its own clock_gettime, and whatever that does (it
// may allocate) must not happen under our locks. Without the kernel's own function the system call serves.
#include <time.h>

#include "platform/linux/kernel_function.h"
#include "platform/linux/syscall.h"
#include "platform/platform.h"

namespace rh::platform {

namespace {

// As in the kernel's interface, whatever size the C library's time_t has.
struct KernelTime {
  long seconds, nanoseconds;
};

using GetTime = int(clockid_t clock, KernelTime* time);

#if defined(__aarch64__)
constexpr const char* kFunction = "__kernel_clock_gettime";
#else
constexpr const char* kFunction = "__vdso_clock_gettime";
#endif

int ask_kernel(clockid_t clock, KernelTime* time) {
  return static_cast<int>(system_call(SYS_clock_gettime, clock, reinterpret_cast<long>(time)));
}

constinit KernelFunction<GetTime> g_get_time{kFunction, ask_kernel};

}  // namespace

uint64_t now_ms() {
  KernelTime now = {};
  g_get_time.get()(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<uint64_t>(now.seconds) * 1000 + static_cast<uint64_t>(now.nanoseconds) / 1000000;
}

}  // namespace rh::platform
