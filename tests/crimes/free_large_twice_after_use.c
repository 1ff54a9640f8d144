/* Frees a large block twice, in a thread that has small blocks of its own. */
#include "crime.h"

int main(void) {
  char* small = malloc(100);
  char* block = malloc(8 * MIB);
  free(block);
  free(hidden(block));
  return survived(small);
}
