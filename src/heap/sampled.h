// The blocks that a profile tells of (profile/profile.h): each comes from one first-class heap, so that its free takes
// the slow path, where the profile can be told. That heap is no program's: its blocks pass for those of threads' heaps.
#pragma once

#include "heap/block.h"
#include "heap/shared.h"

namespace rh::sampled {

// Begins anew, with one byte in `every` chosen. Any thread may do so at any time, but not in a handler of a signal.
void start(uint64_t every);
void stop();

// Changes that, while it is on.
void set_every(uint64_t every);

// Where it comes from: for each tag from another. Null when there is no memory for it.
Heap* heap();

// A large block that the program wants longer is to be made elsewhere, by an allocation of the calling thread's that
// follows: it is one of those chosen, for what it grows by. Until then its pages must not be moved either.
bool must_move(const BlockAt& large, size_t size);
bool must_be_copied();

// Of a large block: whether it is one of those; and then, that it is about to be freed, or is so long now.
bool is_sampled(const Span* large);
void note_free(const Span* large);
void note_resize(const Span* large, size_t size);

// Moves the pages of a large block that is one of those to `target`, as large::move does.
bool move(Span* large, Span* target, size_t size, Units lent);

// In a fork's child that cannot know whether the heap is whole: there will be another.
void forget_heap();

}  // namespace rh::sampled
