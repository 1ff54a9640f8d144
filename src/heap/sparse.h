// Slabs of which little is in use: their free pages go back to the OS once they have been available for a while
// (slabs/holes.cpp). Until then they lie at the front of their class's list, and those that were looked at behind them:
// so what has holes is taken from last, and each is looked at once.
#pragma once

#include "heap/types.h"

namespace rh::sparse {

// So often they are looked at before anything is returned of them, which is the decay time.
inline constexpr unsigned kLooks = 4;

// Looks at the heap's available slabs, and returns pages of those that are due, of about `most` slabs. With `now` all
// are due. Holding no heap's lock. True when there were as many: more may be due.
bool look(Heap* heap, bool now, unsigned most, ThreadToken token);

// Without a helper, and where it would come too late: who grows beside much that is sparse returns some of that at each
// step instead, so that the peak does not rise by it.
//
// A slab was taken from memory that nobody has touched. Under the heap's lock.
void note_growth(Heap* heap);

// To be called, holding no heap's lock, when that was noted.
inline bool is_wanted(const Heap* heap) { return platform::kReplacesByZeros && heap->gives_sparse.load(); }
void give_some(Heap* heap);

// How many bytes have gone back by now.
size_t returned();

}  // namespace rh::sparse
