// Which registers there are beyond those that every processor of the architecture has.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace rh::platform {

// Whether functions compiled for AVX2 can be called: the processor has it (CPUID), and the OS keeps its registers for
// each thread (XCR0).
inline bool has_avx2() {
#if defined(__x86_64__)
  unsigned a, b, c, d;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_OSXSAVE) == 0 || (c & bit_AVX) == 0) return false;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (b & bit_AVX2) == 0) return false;
  unsigned low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr unsigned kVectors = 0b110;
  return (low & kVectors) == kVectors;
#else
  return false;
#endif
}

}  // namespace rh::platform
