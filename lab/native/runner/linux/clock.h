// Time, in the units the runner reckons in.
#pragma once

#include <sys/resource.h>
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

// What the runner itself has used: on a busy machine far less than passes.
inline std::int64_t own_ns() { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

}  // namespace runner
