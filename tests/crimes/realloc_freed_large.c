/* Resizes a large block that was freed. */
#include "crime.h"

int main(void) {
  char* block = malloc(8 * MIB);
  free(block);
  block = realloc(hidden(block), 16 * MIB);
  return survived(block);
}
