/* Resizes an address in the range that is reserved for the heap, where no block has ever been. */
#include "crime.h"

int main(void) {
  char* block = realloc(hidden(unused_in_realm()), 100);
  return survived(block);
}
