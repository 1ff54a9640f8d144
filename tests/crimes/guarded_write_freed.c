/* Writes to a block that is free. */
#include "guarded.h"

int main(void) {
  char* block = hidden(guarded_block(1));
  free(block);
  *(volatile char*)(hidden(block)) = 1;
  return survived(block);
}
