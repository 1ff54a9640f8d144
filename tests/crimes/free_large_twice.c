/* Frees a large block twice. */
#include "crime.h"

int main(void) {
  char* block = malloc(8 * MIB);
  free(block);
  free(hidden(block));
  return survived(block);
}
