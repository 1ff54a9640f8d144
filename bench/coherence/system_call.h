// System calls without the C library: an allocator may stand in for its functions, even for syscall(), and what it does
// there is seen here.
#pragma once

#include <sys/syscall.h>

namespace coherence {

// A negated error number where it fails, as the kernel says it. Not reheap's own function (platform/linux/syscall.h):
// that one is compiled as for ThreadSanitizer here, and of two the linker would keep one.
inline long system_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  register long fourth asm("r10") = d;
  register long fifth asm("r8") = e;
  register long sixth asm("r9") = f;
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
               : "rcx", "r11", "memory");
  return result;
}

}  // namespace coherence
