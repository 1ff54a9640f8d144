/* Resizes a small block that is free. */
#include "small.h"

int main(void) {
  take_blocks();
  free(blocks[500]);
  void* volatile block = realloc(hidden(blocks[500]), 2000);
  return survived(block);
}
