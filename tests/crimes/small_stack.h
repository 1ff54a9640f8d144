/* A stack of its own for the calling thread's signals, behind a page that nobody may touch. */
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

/* `room`: what is left of it in a handler, where the kernel has put the registers. */
static inline void take_small_stack(size_t room) {
  enum { PAGE = 4096, MOST = 64 * 1024 };
  size_t of_kernel = getauxval(AT_MINSIGSTKSZ);
  char* memory = mmap(NULL, PAGE + MOST, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (of_kernel == 0) of_kernel = (size_t)MINSIGSTKSZ;
  stack_t small = {.ss_sp = memory + PAGE, .ss_size = of_kernel + room};
  if (memory == MAP_FAILED || mprotect(memory + PAGE, MOST, PROT_READ | PROT_WRITE) != 0) abort();
  if (sigaltstack(&small, NULL) != 0) abort();
}
