/* Asks a heap that was destroyed for more than there can be. */
#include "crime.h"

int main(void) {
  rh_heap* heap = rh_heap_create();
  rh_heap_destroy(heap);
  return survived(rh_heap_calloc(hidden(heap), (size_t)(uintptr_t)hidden((void*)(SIZE_MAX / 2)), 4));
}
