/* Resizes a block within a heap that it is not from. */
#include "crime.h"

int main(void) {
  rh_heap* heap = rh_heap_create();
  rh_heap* other = rh_heap_create();
  return survived(rh_heap_realloc(heap, hidden(rh_heap_malloc(other, 100)), 200));
}
