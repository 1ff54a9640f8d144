/* Asks for the size of a large block that was freed. */
#include "crime.h"

#include <malloc.h>

int main(void) {
  char* block = malloc(8 * MIB);
  free(block);
  return (int)malloc_usable_size(hidden(block)) + survived(block);
}
