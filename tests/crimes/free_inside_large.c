/* Frees a pointer into the middle of a large block. */
#include "crime.h"

int main(void) {
  char* block = malloc(8 * MIB);
  free(hidden(block + 4096));
  return survived(block);
}
