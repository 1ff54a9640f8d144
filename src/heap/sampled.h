// The blocks that a profile tells of (profile/profile.h).
//
// Those of threads' heaps come from one first-class heap, so that their frees take the slow path, where the profile can
// be told. That heap is no program's: its blocks pass for those of threads' heaps. Those of a program's heap stay in
// it: there frees take the slow path anyway, and who frees asks whether the profile may know the block.
#pragma once

#include "heap/block.h"
#include "heap/shared.h"
#include "heap/watch.h"

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

// Of a large block in the list of a heap: whether that is no program's.
bool is_sampled(const Span* large);

// A large block was `before` bytes long, and is so long now.
void tell_resize(const Span* large, size_t before, size_t size);
RH_INLINE void note_resize(const Span* large, size_t before, size_t size) {
  if (RH_UNLIKELY(profile::has_noted() || watch::is_on())) tell_resize(large, before, size);
}

// A block of a program's heap, chosen where one byte in `every` was, is about to be handed out.
void note_in_heap(Heap* heap, const void* block, size_t size, uint64_t every);

// The block is about to be freed.
RH_INLINE void note_free(const void* block) {
  if (RH_UNLIKELY(profile::has_noted())) profile::note_free(block);
}

// All blocks of the program's heap are.
void note_end(Heap* heap);

// Moves the pages of a large block of a heap that is no program's to `target`, as large::move does.
bool move(Span* large, Span* target, size_t size, Units lent);

// In a fork's child that cannot know whether the heap is whole: there will be another.
void forget_heap();

}  // namespace rh::sampled
