// Where the blocks of a bin come from: the class's current slab, the next available one, one that belonged to a heap
// left behind, or fresh memory.
#pragma once

#include "heap/types.h"

namespace rh {

// A block, and a bin that is filled again; none when there is no memory. The caller holds heap.lock and is the owner,
// or the heap is shared.
slab::Taken refill(Heap* heap, SizeClass size_class);

}  // namespace rh
