/* Frees a small block twice, and others between. */
#include "small.h"

int main(void) {
  take_blocks();
  free(blocks[500]);
  free_some();
  free(hidden(blocks[500]));
  return survived_reuse();
}
