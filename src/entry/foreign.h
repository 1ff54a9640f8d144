// What lies beside this library. Pointers that are not ours go to the allocator next in line: the one that malloc would
// reach if this library were not there. When nobody is next, the process ends with a message: the pointer is nobody's.
#pragma once

#include <stddef.h>

#include "base/compiler.h"

namespace rh {

// The topmost layer of each library defines it, as a constant: the first pointer that is not ours may come before any
// code of ours has run. Where malloc is the system's: entry/linux/foreign_system.cpp, entry/windows/foreign_system.cpp.
struct Foreign {
  // Looks the next allocator up. Not from within an allocation: this may need the loader.
  void (*resolve)();
  void (*free)(void* block);
  void* (*reallocate)(void* block, size_t size);
  size_t (*usable_size)(void* block);
  // Who is to make all blocks in our place: ThreadSanitizer, where it is in the program. Null: nobody is.
  using Allocate = void*(size_t alignment, size_t size);
  Allocate* (*instead)() = nullptr;
  // Sets the errno of the C library that callers look at.
  void (*set_errno)(int error);
};

RH_HIDDEN extern constinit const Foreign g_foreign;

}  // namespace rh
