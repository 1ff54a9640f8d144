// Most programs, and most threads, ask for a few blocks of many sizes. If each class began with a slab, each would
// touch a page for them. So a class without a slab is served by another, its lender, until it has had a page's worth of
// that one's blocks; the blocks are the lender's like any other. docs/design/small.md has the measurements.
//
// What a lender gives is not its own use: while it lends it counts as seldom used, so that its slab goes back when all
// of it is free (heap/slab_lists.h).
#pragma once

#include "heap/slab_lists.h"

namespace rh::lending {

constexpr unsigned most_lent(SizeClass lender) { return static_cast<unsigned>(4096 / size_class::size_of(lender)); }
static_assert(most_lent(size_class::kLeastLender) <= UINT8_MAX);

// The class to serve the next request of `size_class` from, whose bin is empty: itself or its lender. The caller owns
// the heap and holds its lock.
inline SizeClass choose(Heap* heap, SizeClass size_class) {
  SizeClass lender = size_class::lender_of(size_class);
  if (lender == size_class || heap->lent[size_class] >= most_lent(lender)) return size_class;
  if (heap->current[size_class] != nullptr || !heap->available[size_class].empty()) return size_class;
  ++heap->lent[size_class];
  if (!has_few_blocks(heap, lender)) heap->uses[lender] = kFewBlocks + 1;
  return lender;
}

}  // namespace rh::lending
