// What realloc to no bytes does is each C library's own, and programs rely on theirs: glibc frees the block and gives
// NULL; musl gives a block as of malloc(0), and a program of its takes NULL for a lack of memory.
#pragma once

#include <cstddef>

#include "platform/linux/libc.h"

namespace rh {

// What realloc is to make of a size. The shared library serves programs of both.
inline size_t size_for_realloc(size_t size) {
#if defined(__GLIBC__)
  return size != 0 || __register_atfork != nullptr ? size : 1;
#else
  return size != 0 ? size : 1;
#endif
}

}  // namespace rh
