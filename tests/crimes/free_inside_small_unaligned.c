/* Frees a pointer into a small block, aligned to nothing. */
#include "small.h"

int main(void) {
  take_blocks();
  free(hidden(blocks[500] + 5));
  return survived(blocks[500]);
}
