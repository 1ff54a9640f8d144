// What lies beside this library. Pointers that are not ours go to the allocator next in line: the one that malloc would reach if this library were
// not there. When nobody is next, the process ends with a message: the pointer is nobody's.
#pragma once

#include <stddef.h>

namespace rh::foreign {

// Looks the next allocator up. Not from within an allocation: this may need the loader.
void resolve();

[[gnu::cold]] void free(void* block);
void* reallocate(void* block, size_t size);
size_t usable_size(const void* block);

// Sets the errno of the C library that callers look at.
void set_errno(int error);

}  // namespace rh::foreign
