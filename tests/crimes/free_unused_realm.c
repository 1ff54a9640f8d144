/* Frees an address in the range that is reserved for the heap, where no block has ever been. */
#include "crime.h"

int main(void) {
  char* block = malloc(100);
  free(hidden(unused_in_realm()));
  return survived(block);
}
