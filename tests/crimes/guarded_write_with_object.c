/* The same, with a stack that is large enough for the line and the object. */
#include "guarded.h"
#include "small_stack.h"

int main(void) {
  char* block = hidden(guarded_block(1));
  if (!rh_option_set("misuse_json", "/dev/stderr")) abort();
  take_small_stack(4096);
  free(block);
  *(volatile char*)(hidden(block)) = 1;
  return survived(block);
}
