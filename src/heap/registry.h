// All heaps there are: how threads come by theirs, and what becomes of it when they end.
//
// A thread's heap outlives it. Nothing happens when a thread ends (platform::Ownership lapses); a new thread takes
// over an ownerless heap whole, and a heap about to take memory from the arena first takes the available slabs of
// one that has no owner.
#pragma once

#include "heap/types.h"

namespace rh::registry {

// A heap owned by the calling thread: one left behind, or a new one. Null when out of memory.
Heap* adopt_or_make();

// To be called when the loader is done with this library: from then on thread-local storage stays as it is.
void loaded();

// Looks at one other heap; when nobody owns it, takes over its available slabs of that class. The caller holds
// heap.lock.
void adopt_slabs(Heap* heap, SizeClass size_class);

// When nobody owns the thread's heap any more, what that left in bins, current slabs and batches goes where it belongs,
// and what nobody uses to the arena; before that, `let_go` is called. Holding no lock.
void collect_if_left(Heap* heap, ThreadToken token, void (*let_go)(Heap*));

// The heaps of threads, newest first. The list only grows; it may be walked without a lock.
Heap* threads();

// First-class heaps; to be walked holding lock(), or by a Walk.
Heap* shared_heaps();
Lock& lock();

// Goes through the first-class heaps, holding lock() by `token` while it stands at one. In between it lets go: others
// make and destroy heaps then, the one it stood at too, and who is about to fork comes first. What is made meanwhile it
// leaves out. The caller holds no heap's lock when it moves on.
class Walk {
 public:
  explicit Walk(ThreadToken token);
  ~Walk();
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

  // Null when there are no more, or the lock could not be had.
  Heap* next();

  // Lets go, and comes back to the same heap. False when that is gone, or the lock could not be had.
  bool stay();

  // Whether it could have the lock each time.
  bool is_whole() const { return holds_; }

 private:
  bool let_go();

  ThreadToken token_;
  Heap* at_ = nullptr;
  uint64_t number_ = UINT64_MAX;  // of that heap
  bool holds_;
};

// Acquires lock() for a fork, for whom walks make way.
bool acquire_for_fork(uint64_t patience_ms);

// They begin at multiples of kPageSize, and each has a life of its own from 1 to kMostLife.
inline constexpr uint16_t kMostLife = platform::kPageSize - 1;

// The lock was taken from a thread that was terminated. The caller holds it.
void put_in_order();

// A first-class heap, empty; null when out of memory. retire takes one back, empty but for what its store keeps: some
// are spare, and stay in the list, others forgotten, which gives back all that they have.
Heap* make_shared();
void retire_shared(Heap* heap);
inline bool is_spare(const Heap* heap) { return heap->life == 0; }

// For a library about to be unloaded, with nobody inside it: when no block is live, everything goes back to the OS,
// else what is free does; heaps that living threads own stay. Nothing of the library may be used again.
void release_unused();

size_t thread_heaps();
size_t metadata_bytes();

// For debug builds: the books of every heap, the arena and the realm balance. Holding no lock.
void check_books();

// In a fork's child: there are the heaps there were at the fork, linked by next_at_fork, and memory for others is
// fresh.
void go_back_to(Heap* threads, Heap* shared_heaps);

}  // namespace rh::registry
