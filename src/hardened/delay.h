// What keeps freed blocks from use for a while: places of the thread's heap, taken in turn.
#pragma once

#include <atomic>

#include "heap/types.h"

namespace rh::hardened {

// Of so many places of a thread's small blocks use is made: 1 to kMostQuarantine.
inline constexpr unsigned kQuarantine = 32, kMostQuarantine = 256;
RH_HIDDEN extern constinit std::atomic<unsigned> g_quarantine;

// The next of so many places, of a heap that keeps blocks from use.
template <typename Block, size_t kPlaces>
RH_INLINE unsigned next_place(const DelayedOf<Block, kPlaces>& delayed, unsigned count) {
  const unsigned left = delayed.left;
  return (RH_LIKELY(left != 0) ? left : count) - 1;
}

// Keeps `block` in that place; gives what was there, which may be null. What comes out is out before anything is done
// with it: a fork may find the thread anywhere here, and better that the child loses a block than that it frees one
// twice.
template <typename Block, size_t kPlaces>
RH_INLINE Block exchange_at(DelayedOf<Block, kPlaces>& delayed, unsigned at, Block block) {
  Block& place = delayed.places[at];
  delayed.left = at;
  Block before = place;
  place = block;
  std::atomic_signal_fence(std::memory_order_release);
  return before;
}

// The same in the next place, of a thread's own heap.
template <typename Block, size_t kPlaces>
RH_INLINE Block exchange(DelayedOf<Block, kPlaces>& delayed, Block block, unsigned count = kPlaces) {
  return exchange_at(delayed, next_place(delayed, count), block);
}

template <typename Block, size_t kPlaces, typename Visit>
void take_each(DelayedOf<Block, kPlaces>& delayed, Visit visit) {
  delayed.left = 0;
  for (Block& place : delayed.places) {
    Block block = place;
    place = nullptr;
    std::atomic_signal_fence(std::memory_order_release);
    if (block != nullptr) visit(block);
  }
}

}  // namespace rh::hardened
