/* Frees a pointer into a small block of the slab that blocks are just taken from. */
#include "small.h"

int main(void) {
  for (int round = 0; round < 10; ++round) take_blocks();
  free(hidden(blocks[BLOCKS - 1] + 16));
  return survived(blocks[0]);
}
