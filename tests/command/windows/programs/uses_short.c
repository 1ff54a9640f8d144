/* Has a block of its C runtime's, and ends with 42 when that works. */

#include <stddef.h>

__declspec(dllimport) void* malloc(size_t size);
__declspec(dllimport) void free(void* block);

unsigned long start(void) {
  char* block = malloc(100);
  if (block == NULL) return 1;
  block[99] = 1;
  free(block);
  return 42;
}
