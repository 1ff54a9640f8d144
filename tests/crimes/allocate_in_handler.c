/* Allocates in a signal's handler that interrupted its thread while that made freed memory into blocks: pages that can
 * only be read stop it there. */
#include "crime.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SIZE = 512, BLOCKS = 16384, PAGE = 4096, READ_ONLY = 1 };

static void on_fault(int number) {
  (void)number;
  for (;;) hidden(malloc((size_t)3 * SIZE));
}

int main(void) {
  static char* blocks[BLOCKS];
  for (int i = 0; i < BLOCKS; i++) blocks[i] = memset(malloc(SIZE), 1, SIZE);
  const uintptr_t first = ((uintptr_t)blocks[BLOCKS / 4] + PAGE - 1) / PAGE * PAGE;
  const uintptr_t end = (uintptr_t)blocks[BLOCKS / 4 * 3] / PAGE * PAGE;
  for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
  signal(SIGSEGV, on_fault);
  syscall(SYS_mprotect, first, end - first, READ_ONLY);
  for (int i = 0; i < BLOCKS; i++) hidden(malloc((size_t)2 * SIZE));
  return survived(NULL);
}
