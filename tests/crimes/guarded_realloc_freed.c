/* Resizes a block that is free. */
#include "guarded.h"

int main(void) {
  char* block = hidden(guarded_block(0));
  free(block);
  return survived(realloc(hidden(block), 2 * LENGTH));
}
