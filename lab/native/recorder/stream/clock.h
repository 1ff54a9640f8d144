// The time of events: the processor's counter where it runs evenly on all cores, else the system's monotonic clock.
#pragma once

#include <cstdint>

#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#endif

namespace recorder {

// Set once, before the first event. See system.h: even_counter.
inline constinit bool g_counter = false;

uint64_t monotonic_nanoseconds();  // the system's part

// A sixteenth of the counter still tells apart what one thread hands to another, and takes less room.
inline constexpr int kCounterShift = 4;

// Read in its place: not before what the program did until here (a free's block may just have come from another thread,
// and that load may still be under way; the counter alone would be read ahead of it), and not after what follows (a
// store becomes visible only when all before it is done).
inline uint64_t ticks_now() {
#if defined(__x86_64__) || defined(__i386__)
  if (g_counter) [[likely]] {
    __builtin_ia32_lfence();
    return __rdtsc() >> kCounterShift;
  }
#endif
  return monotonic_nanoseconds();
}

}  // namespace recorder
