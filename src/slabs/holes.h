// Holes: pages of a slab that went back to the OS while other blocks of it are in use. A block that lies in a hole, or
// partly, is hollow: free, and in no list until the hole is filled. Which these are follows from the holes alone.
//
// The caller holds the owning heap's lock.
#pragma once

#include "slabs/slab.h"

namespace rh::slab {

// Returns to the OS the pages that hold nothing but free blocks, where it can replace them by zeros; gives how many
// bytes. Any thread may call this while the owner frees: what the owner freed last stays, with its page.
size_t punch(Span* slab);

inline bool has_holes(const Span* slab) {
  for (uint32_t unit = 0; unit < slab->units; ++unit)
    if (slab[unit].holes != 0) return true;
  return false;
}

// Called by the owner: hands out the blocks of a page of a hole. Ends the process when one of them was written to
// meanwhile.
Taken fill_hole(Span* slab);

unsigned hollow_blocks(const Span* slab);

// Of a slab that ends.
inline void forget_holes(Span* slab) {
  for (uint32_t unit = 0; unit < slab->units; ++unit) slab[unit].holes = 0;
}

}  // namespace rh::slab
