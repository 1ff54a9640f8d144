// Asks for a cache line that will be read and then written, so that it moves between processors once, not twice.
#pragma once

#include "base/compiler.h"

#if defined(RH_COHERENCE)
extern "C" void __tsan_write8(void* address);  // to the simulation (bench/coherence) it is the write
#endif

namespace rh {

RH_INLINE void prefetch_to_write(const void* line) {
#if defined(RH_COHERENCE)
  __tsan_write8(const_cast<void*>(line));
#elif defined(__x86_64__)
  // Every 64-bit processor takes it; by themselves compilers only emit it for newer ones.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace rh
