// A library that has libreheap-core linked in.
#include <cstring>

#include "reheap/reheap.h"

extern "C" __attribute__((visibility("default"))) void* plugin_use_heap(bool keep) {
  rh_heap* heap = rh_heap_create();
  void* block = rh_heap_malloc(heap, 1000);
  if (block != nullptr) std::memset(block, 1, 1000);
  rh_heap_destroy(heap);
  for (std::size_t size = 1; size < 3000000; size *= 2) rh_free(rh_malloc(size));
  return keep ? std::memset(rh_malloc(100), 1, 100) : nullptr;
}
