/* Writes behind the end of a block, on its own page, and frees it. */
#include "guarded.h"

int main(void) {
  char* block = hidden(guarded_block(0));
  *(volatile char*)(block + LENGTH) ^= 1;
  free(block);
  return survived(hidden(block));
}
