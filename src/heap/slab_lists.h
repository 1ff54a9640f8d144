// A heap's slabs: each class has a current one, and those with free blocks are available; the spans of empty ones go to
// the store. Here they change places when blocks of theirs become free; refill.cpp takes from them.
//
// The caller holds heap.lock.
#pragma once

#include "heap/types.h"

namespace rh {

// Most threads use most classes not at all, or a few times. So a class begins with one block, then takes two, then
// four, and at last a page of them.
constexpr unsigned kFewBlocks = 4;

// Until it was refilled so often its slab goes back when all of it is free again, to serve the next class.
constexpr unsigned kSeldom = 12;

inline void note_use(Heap* heap, SizeClass size_class) {
  if (heap->uses[size_class] < kSeldom) ++heap->uses[size_class];
}

inline bool is_seldom_used(const Heap* heap, SizeClass size_class) { return heap->uses[size_class] < kSeldom; }

// While the blocks made at a time are few, each that is freed is looked at.
inline bool has_few_blocks(const Heap* heap, SizeClass size_class) { return heap->uses[size_class] <= kFewBlocks; }

inline size_t bytes_of(const Span* slab) { return Units{slab->units}.bytes(); }

// The class has no current slab any more; gives the one it had, or null.
Span* take_current(Heap* heap, SizeClass size_class);

// A current slab has no more blocks, nor has its class's bin, and another is to take its place.
void set_aside(Heap* heap, Span* slab);
void make_current(Heap* heap, Span* slab);

// Whether the owner's next allocation of the class takes what lies ready.
RH_INLINE bool has_at_hand(const Heap* heap, SizeClass size_class) {
  const Span* current = heap->current[size_class];
  return heap->bins[size_class] != nullptr || current == nullptr || current->free != nullptr ||
         !heap->available[size_class].empty();
}

// By the owner, who has freed a block of the slab, and whose class has nothing at hand: the slab becomes the current
// one, so that the next allocation finds its blocks at once. False, and nothing done, when the current one has blocks,
// or the slab is not full.
bool serve_next(Heap* heap, Span* slab);

// The available slabs of each class: those to take from first at the front, behind them those that were looked at for
// pages to return (heap/sparse.h).
void make_available(Heap* heap, Span* slab);
void make_available_last(Heap* heap, Span* slab);
Span* pop_available(Heap* heap, SizeClass size_class);  // null when there is none
void remove_available(Heap* heap, Span* slab);

inline bool is_available(const Span* slab) {
  return slab->state == SlabState::available || slab->state == SlabState::sparse;
}

// The age of an available slab; the last is of those behind.
inline constexpr uint8_t kLookedAt = 7;

// Of an emptied heap: it has no sparse slabs.
void forget_sparse(Heap* heap);

// By the owner: returns what is in its bins to the slabs.
void empty_bins(Heap* heap);

// By the owner, whose store has no slab for the class: where the heap is larger than ever, the other classes give up
// current slabs of which nothing is in use, as if these had never been used.
void give_up_unused(Heap* heap, SizeClass wanted);

// A slab may have become worth using or empty. True when memory may have become free that is to be returned.
bool review(Heap* heap, Span* slab, Caller caller);

// Gives back to the arena every slab of the heap that is empty, and what lies in its store; `token` is the caller's
// own.
void release_empty(Heap* heap, ThreadToken token);

}  // namespace rh
