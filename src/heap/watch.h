// While somebody watches allocations, each is looked at: is it one of the few that are chosen? Which is next is
// known ahead. So when one has been looked at, those of its class that follow and will not be chosen are passed at
// once: the blocks for them go into a second bin of the class, and the table that malloc's fast path reads leads
// there. Where more may be passed than there are blocks, what is freed goes there too, until as many have come as
// still may. When that bin is empty the slow path looks again. While nobody watches this costs nothing, not an
// instruction; and it can begin and end at any moment, for all threads at once.
#pragma once

#include "heap/types.h"

namespace rh::watch {

enum class Watcher : uint8_t {
  guards = 1,   // puts some blocks on guarded pages (heap/guards.h)
  profile = 2,  // has some blocks come from a heap of their own (heap/sampled.h)
  other = 4,    // another allocator, which makes all blocks
};

// Or goes on, with another rate. A thread that is in an allocation meanwhile may still do it as before, and threads
// first use up what they have passed. May be called by any thread, at any time; in a handler of a signal.
void begin(Watcher watcher);
void end(Watcher watcher);

// What the calling thread has passed is to be looked at after all. Not in a handler, which may have interrupted an
// allocation.
void look_at_passed();

inline bool is_on() { return platform::g_unset.medium_sizes.load() == 0; }

// One allocation in so many is to be on guarded pages, on average; 0: none, as it is at first.
RH_HIDDEN extern constinit std::atomic<uint64_t> g_guarded_every;
inline uint64_t guarded_every() { return g_guarded_every.load(std::memory_order_relaxed); }

struct Choice {
  bool guarded, sampled;
};

// Of the owner's next allocation, of a class, Watched::kLarge or Watched::kOfHeaps, which is of `size` bytes and takes
// `taken`; or of what a block is to be longer by.
RH_COLD void draw_anew(Heap* heap);
RH_COLD Choice choose(Watched& watched, Watched::Next& next, size_t size, size_t taken);
inline Choice look_at(Heap* heap, size_t kind, size_t size, size_t taken) {
  Watched& watched = heap->watched;
  const bool as_before = watched.guarded_every == guarded_every() && watched.sampled_every == profile::every();
  if (RH_UNLIKELY(!as_before)) draw_anew(heap);
  Watched::Next& next = watched.next[kind];
  next.guarded -= 1;
  next.sampled -= static_cast<int64_t>(taken);
  return RH_LIKELY(next.guarded > 0 && next.sampled > 0) ? Choice{} : choose(watched, next, size, taken);
}

// The owner's next large allocation is one that the profile hears of.
inline void choose_next(Heap* heap) { heap->watched.next[Watched::kLarge].sampled = 0; }
bool is_next_chosen(const Heap* heap);

// By the owner, who has looked at an allocation of the class that got `taken`, the rest of which is in the class's bin:
// passes those that follow, as far as none of them is to be chosen and there are, or will be, blocks for them.
void pass(Heap* heap, SizeClass size_class, const slab::Taken& taken);

// Whether what the owner frees into the slab is for allocations that were passed.
inline bool is_for_passed(const Span* slab) { return slab->bin.load() >= size_class::kCount; }

// By the owner, when the slab's countdown is over: as many blocks were freed as were passed by.
inline void note_mark(Span* slab) {
  if (RH_UNLIKELY(is_for_passed(slab))) slab->bin.store(slab::class_of(slab));
}

// By the owner, who has used up what was passed: the blocks that were expected to be freed meanwhile, and were not, are
// to be looked at after all.
void settle(Heap* heap, SizeClass size_class);

// The slab, which may be null, is about to be its class's current one no longer, or to serve those that were passed. By
// anyone, under the lock.
RH_COLD void stop_serving(Heap* heap, Span* slab);
inline void stop_serving_passed(Heap* heap, Span* slab) {
  if (slab != nullptr && RH_UNLIKELY(is_for_passed(slab))) stop_serving(heap, slab);
}

// As settle, and puts the blocks that were not used back into the bin they came from. By the owner, or with the owner
// out of the way, under the lock.
RH_COLD void take_back(Heap* heap, SizeClass size_class);

}  // namespace rh::watch
