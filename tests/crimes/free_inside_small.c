/* Frees a pointer into a small block. */
#include "small.h"

int main(void) {
  take_blocks();
  free(hidden(blocks[500] + 16));
  return survived(blocks[500]);
}
