/* Asks for the size of a small block that is free. */
#include "small.h"

#include <malloc.h>

int main(void) {
  take_blocks();
  free(blocks[500]);
  return (int)malloc_usable_size(hidden(blocks[500])) + survived(blocks[500]);
}
