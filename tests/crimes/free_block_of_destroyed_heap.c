/* Frees a block whose heap was destroyed with all its blocks. */
#include "crime.h"

int main(void) {
  rh_heap* heap = rh_heap_create();
  char* block = rh_heap_malloc(heap, 8 * MIB);
  rh_heap_destroy(heap);
  free(hidden(block));
  return survived(block);
}
