// Which code allocates how much, how much of it is live, was live at the peak, and for how long: estimated from few
// blocks. Each byte that is allocated is chosen with the same chance, and the block that holds it stands for what was
// not: for 1 / (1 - exp(-size / every)) blocks of its kind, so that on average every sum is right (docs/profiles.md).
//
// Choosing is the heap's, with picks(); it tells here of blocks that it chose, and of what becomes of them.
#pragma once

#include <atomic>

#include "base/compiler.h"
#include "platform/lock.h"
#include "profile/stacks.h"

namespace rh::profile {

inline constexpr uint64_t kUsualEvery = 512 * 1024;
inline constexpr uint64_t kMostEvery = uint64_t{1} << 40;

// Begins anew: nothing is known of what is allocated already. One byte in `every` is chosen, 1 to kMostEvery; that may
// change at any time.
void start(uint64_t every);
void set_every(uint64_t every);

// No more blocks are chosen. Of those that were, it is still noted that they are freed.
void stop();

RH_HIDDEN extern constinit std::atomic<uint64_t> g_every;
inline uint64_t every() { return g_every.load(std::memory_order_relaxed); }  // 0: stopped

// A block that was chosen where one byte in `every` was: by the calling thread's stack. Holding no lock.
RH_COLD void note_allocation(const void* block, size_t size, uint64_t every);

// It is about to be freed, or is so long now. Of a block that is not known nothing is noted, and note_resize gives
// false. Holding no lock. Tools outside know a block by its address and its size alone (platform::probe_allocated): for
// them one that is resized goes, and is there anew.
RH_COLD void note_free(const void* block);
RH_COLD bool note_resize(const void* block, size_t size, uint64_t every);

// So are all for which `is_gone` says so, which is asked under the lock.
RH_COLD void note_free_each(bool (*is_gone)(const void* block, const void* context), const void* context);

// It lies elsewhere from now on, and is about to get there, when others may have its old place; and then, that it has
// got there and is so long, or has stayed where it was.
RH_COLD void begin_move(const void* from, const void* to);
RH_COLD void end_move(const void* to, size_t size, uint64_t every);
RH_COLD void cancel_move(const void* from, const void* to);

// Whether the block may be known, without the lock: when not, there is nothing to be told of.
RH_COLD bool may_know(const void* block);

// Whether any was ever noted: before, there is nothing to be told of.
RH_HIDDEN extern constinit std::atomic<bool> g_has_noted;
inline bool has_noted() { return g_has_noted.load(std::memory_order_relaxed); }

// How memory went: what was live at some moments, ever further apart.
struct Curve {
  static constexpr size_t kMost = 512;
  struct Point {
    uint64_t ms, live;
  };
  Point points[kMost];
  uint32_t count;
  uint64_t every_ms;
};

// A copy of what is known.
struct Snapshot {
  Stacks stacks;
  Curve curve;
  Amount live, at_peak;
  uint32_t peak;  // a stack's at_peak holds if it says the same of its peak; else its live does
  uint64_t every;
  uint64_t duration_ms;
  uint64_t lost;  // chosen blocks for which there was no memory here
};

// False when there is no memory for it. To be given back.
bool take(Snapshot& snapshot);
void give_back(Snapshot& snapshot);

// For a handler of a signal, which must not wait for a lock that its thread holds: calls `function` at once, or as soon
// as the thread has released this one.
void when_unlocked(void (*function)());

// Held around a fork: the child goes on with what it has.
Lock& lock();

// The lock could not be had, or its holder is gone: what it guards may be half changed, and is left alone. The caller
// holds it, or nobody else is there.
void begin_anew();

// In a fork's child: threads other than the calling one, which were following stacks, are not there.
void forget_others(ThreadToken own);

}  // namespace rh::profile
