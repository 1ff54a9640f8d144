// The heaps that programs made and that are served by heaps of ours, by their handles. Found without a lock; of bounded
// size: a heap for which there is no place stays with the original.
//
// A handle has eight places where it may stand, in one or half a cache line. So a lookup ends soon whether it finds
// anything or not, and what is taken out leaves nothing behind.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rh {
struct Heap;
}

namespace rh::heaps {

// What serves a handle.
struct Served {
  Heap* heap = nullptr;             // null: the heaps of the threads
  uint32_t flags = 0;               // it was made with
  std::atomic<uint32_t> locked{0};  // how many times, by the holder of the original's lock
  std::atomic<uint32_t> holder{0};  // the number of that thread
};

class Handles {
 public:
  // What serves it, or null. To be called only while nobody destroys the heap.
  Served* find(const void* handle) {
    if (!can_be(handle)) return nullptr;
    size_t set = set_of(handle);
    for (size_t place = 0; place < kPlaces; ++place)
      if (handles_[set][place].load(std::memory_order_acquire) == handle) return &served_[set][place];
    return nullptr;
  }

  // False when there is no place.
  bool add(const void* handle, Heap* heap, uint32_t flags);

  // Forgets the handle. What served it, or null: of several threads that ask, one gets it.
  Heap* remove(const void* handle);

  static constexpr unsigned kSetBits = 8;
  static constexpr size_t kSets = size_t{1} << kSetBits;
  static constexpr size_t kPlaces = 8;

 private:
  // What a place without a heap holds is asked for too: HeapDestroy(NULL).
  static bool can_be(const void* handle) { return reinterpret_cast<uintptr_t>(handle) > 1; }

  // Heaps begin at multiples of 64 KiB.
  static size_t set_of(const void* handle) {
    constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
    uint64_t number = reinterpret_cast<uintptr_t>(handle) >> 16;
    return static_cast<size_t>(number * kGolden >> (64 - kSetBits));
  }

  alignas(64) std::atomic<const void*> handles_[kSets][kPlaces] = {};
  Served served_[kSets][kPlaces] = {};
};

}  // namespace rh::heaps
