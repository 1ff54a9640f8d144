/* Frees a block of 200 MiB twice. */
#include "crime.h"

int main(void) {
  char* block = malloc(200 * MIB);
  free(block);
  free(hidden(block));
  return survived(block);
}
