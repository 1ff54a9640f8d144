/* Destroys a heap twice. */
#include "crime.h"

int main(void) {
  rh_heap* heap = rh_heap_create();
  rh_heap_destroy(heap);
  rh_heap_destroy(hidden(heap));
  return survived(heap);
}
