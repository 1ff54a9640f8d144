/* Allocates from a heap that was destroyed, where another has been made since. */
#include "crime.h"

int main(void) {
  rh_heap* heap = rh_heap_create();
  rh_heap_destroy(heap);
  rh_heap* other = rh_heap_create();
  void* block = rh_heap_malloc(hidden(heap), 100);
  rh_heap_destroy(other);
  return survived(block);
}
