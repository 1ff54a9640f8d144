/* Reads before the start of a block. */
#include "guarded.h"

int main(void) {
  char* block = hidden(guarded_block(0));
  char read = *(volatile char*)(block - 8);
  return survived(block) + read;
}
