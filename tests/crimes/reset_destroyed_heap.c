/* Resets a heap that was destroyed. */
#include "crime.h"

int main(void) {
  rh_heap* heap = rh_heap_create_bound();
  rh_heap_destroy(heap);
  rh_heap_reset(hidden(heap));
  return survived(heap);
}
