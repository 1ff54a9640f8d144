/* Frees a small block twice, then all others. */
#include "small.h"

int main(void) {
  take_blocks();
  free(blocks[500]);
  for (int at = 0; at < BLOCKS; ++at) free(hidden(blocks[at]));
  return survived_reuse();
}
