/* Writes behind the end of a block. */
#include "guarded.h"

int main(void) {
  char* block = hidden(guarded_block(1));
  *(volatile char*)(block + LENGTH) = 1;
  return survived(block);
}
