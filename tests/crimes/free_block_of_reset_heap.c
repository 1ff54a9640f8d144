/* Frees a block of a heap that was reset. */
#include "crime.h"

int main(void) {
  rh_heap* heap = rh_heap_create_bound();
  void* block = rh_heap_malloc(heap, 100);
  rh_heap_reset(heap);
  free(hidden(block));
  return survived(block);
}
