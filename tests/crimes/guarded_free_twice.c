/* Frees a block twice. */
#include "guarded.h"

int main(void) {
  char* block = hidden(guarded_block(1));
  free(block);
  free(hidden(block));
  return survived(block);
}
