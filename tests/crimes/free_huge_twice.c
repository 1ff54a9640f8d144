/* Frees a block of 300 MiB twice. */
#include "crime.h"

int main(void) {
  char* block = malloc(300 * MIB);
  free(block);
  free(hidden(block));
  return survived(block);
}
