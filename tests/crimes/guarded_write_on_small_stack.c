/* Writes to a block that is free, in a thread whose signals have hardly any stack. */
#include "guarded.h"
#include "small_stack.h"

int main(void) {
  char* block = hidden(guarded_block(1));
  take_small_stack(1024);
  free(block);
  *(volatile char*)(hidden(block)) = 1;
  return survived(block);
}
