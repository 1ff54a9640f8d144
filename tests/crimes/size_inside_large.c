/* Asks for the size of a pointer into the middle of a large block. */
#include "crime.h"

#include <malloc.h>

int main(void) {
  char* block = malloc(8 * MIB);
  return (int)malloc_usable_size(hidden(block + 32)) + survived(block);
}
