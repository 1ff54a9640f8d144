/* Frees a small block twice, with nothing between, while others of its slab are alive. */
#include "small.h"

int main(void) {
  take_blocks();
  free(blocks[500]);
  free(hidden(blocks[500]));
  free_some();
  return survived_reuse();
}
