// A library that has malloc's archive linked in, and serves its own malloc by it alone.
#include "second_copy.h"

#include <malloc.h>

#include <cstdlib>
#include <new>

extern "C" __attribute__((visibility("default"))) const SecondCopy* second_copy() {
  static const SecondCopy offered = {
      .make = [](std::size_t size) { return malloc(size); },
      .make_new = [](std::size_t size) { return ::operator new(size); },
      .resize = [](void* block, std::size_t size) { return realloc(block, size); },
      .size_of = [](void* block) { return malloc_usable_size(block); },
      .drop = [](void* block) { free(block); },
      .drop_new = [](void* block, std::size_t size) { ::operator delete(block, size); },
  };
  return &offered;
}
