// Blocks of no bytes: addresses that nobody can read or write. There is a place for each kBlockAlign bytes of a range
// without memory, and a bit that says whether it is taken.
#pragma once

#include <cstddef>

namespace rh::hardened::empty {

// A place at a multiple of `alignment`, a power of two from kBlockAlign on; null when there is none.
void* allocate(size_t alignment);

// Whether the address lies in that range.
bool holds(const void* pointer);

// Whether it is a block that was handed out and not freed.
bool is_live(const void* pointer);

// Frees it. False when it is no live block.
bool free(const void* pointer);

}  // namespace rh::hardened::empty
