// A C runtime whose functions are replaced, as the replacements see it.
#pragma once

#include <cstddef>

namespace rh::crt {

// A runtime as it is without us. NULL: it has no such function.
struct Host {
  // For blocks that are not ours.
  void (*free)(void*);
  void* (*realloc)(void*, size_t);
  void* (*recalloc)(void*, size_t, size_t);
  void* (*expand)(void*, size_t);
  size_t (*msize)(void*);
  void (*aligned_free)(void*);
  void* (*aligned_realloc)(void*, size_t, size_t);
  void* (*aligned_recalloc)(void*, size_t, size_t, size_t);
  void* (*aligned_offset_realloc)(void*, size_t, size_t, size_t);
  void* (*aligned_offset_recalloc)(void*, size_t, size_t, size_t, size_t);
  size_t (*aligned_msize)(void*, size_t, size_t);
  int (*heapchk)();
  int (*heapmin)();
  int (*heapwalk)(void*);

  int* (*errno_address)();
  int (*query_new_mode)();
  int (*callnewh)(size_t);      // calls the new-handler; 0 when there is none
  void (*invalid_parameter)();  // calls the handler for invalid parameters, which may not return
};

}  // namespace rh::crt
