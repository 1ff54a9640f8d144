/* Frees a pointer near the end of a large block. */
#include "crime.h"

int main(void) {
  char* block = malloc(8 * MIB);
  free(hidden(block + 7 * MIB + 16));
  return survived(block);
}
