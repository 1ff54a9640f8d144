// Time, in the units the runner reckons in.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>
#include <time.h>

#include <cstdint>

namespace runner {

inline constexpr std::int64_t kSecond = 1'000'000'000;  // in nanoseconds
inline constexpr std::int64_t kMillisecond = 1'000'000;

inline std::int64_t nanoseconds(const timespec& time) { return time.tv_sec * kSecond + time.tv_nsec; }

inline std::int64_t microseconds(const timeval& time) { return time.tv_sec * std::int64_t{1'000'000} + time.tv_usec; }

inline std::int64_t read_clock(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return nanoseconds(time);
}

inline std::int64_t now_ns() { return read_clock(CLOCK_MONOTONIC); }

// What a process has used, all threads together, ended ones too: finer than the ticks of `stat`. -1 when there is no
// such process. The clock's number is made as clock_getcpuclockid does, which asks the kernel each time.
inline std::int64_t used_by_ns(pid_t process) {
  timespec time;
  return clock_gettime((~process) * 8 | 2, &time) == 0 ? nanoseconds(time) : -1;
}

// What the runner itself has used: on a busy machine far less than passes.
inline std::int64_t own_ns() { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

}  // namespace runner
