/* Resizes a pointer into the middle of a large block. */
#include "crime.h"

int main(void) {
  char* block = malloc(8 * MIB);
  block = realloc(hidden(block + 64 * 1024), 100);
  return survived(block);
}
