/* Frees a small block twice; in between, the list that it went into was taken up. */
#include <malloc.h>

#include "small.h"

static int was_freed(const char* block) {
  for (int at = 510; at < 540; ++at)
    if (blocks[at] == block) return 1;
  return 0;
}

int main(void) {
  take_blocks();
  free_some();
  char* first = malloc(SIZE);
  while (!was_freed(first)) first = malloc(SIZE);
  char* block = blocks[520] == first ? blocks[521] : blocks[520];
  free(hidden(block));
  malloc_trim(0);
  return survived(block);
}
