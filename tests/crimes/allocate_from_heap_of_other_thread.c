/* Allocates from a heap that is bound to another thread, which still lives. */
#include <pthread.h>

#include "crime.h"

static void* allocate(void* heap) { return rh_heap_malloc(heap, 100); }

int main(void) {
  rh_heap* heap = rh_heap_create_bound();
  pthread_t thread;
  void* block = rh_heap_malloc(heap, 100);
  pthread_create(&thread, NULL, allocate, heap);
  pthread_join(thread, &block);
  return survived(block);
}
