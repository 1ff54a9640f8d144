/* Uses blocks with pages of their own as it may. */
#include <malloc.h>

#include "guarded.h"

int main(void) {
  for (int round = 0; round < 1000; ++round) {
    char* block = guarded_block(round % 2);
    memset(block, 1, LENGTH);
    block = realloc(block, 100 * LENGTH);
    memset(block, 2, 100 * LENGTH);
    block = realloc(block, 1000 * LENGTH);
    if (block[0] != 2 || block[100 * LENGTH - 1] != 2) abort();
    free(block);
    block = calloc(LENGTH, LENGTH);
    for (int at = 0; at < LENGTH * LENGTH; ++at)
      if (block[at] != 0) abort();
    free(block);
    block = calloc(round % 2, 0); /* has the bytes that its size says */
    memset(block, 3, malloc_usable_size(block));
    block = realloc(block, LENGTH);
    free(block);
  }
  return survived(hidden(NULL));
}
