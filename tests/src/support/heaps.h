// Threads simulated by one, and what the heap layer's tests need to know about heaps.
#pragma once

#include <cstring>

#include "heap/heap.h"
#include "heap/stats.h"
#include "platform/fake/fake.h"

namespace rh {

// A simulated thread with its own token and heap; the calling thread plays it while it runs a body.
class Actor {
 public:
  explicit Actor(uint32_t token = 0) : number_(fake::make_thread(token)) {}
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;

  template <typename Body>
  auto operator()(Body body) {
    Switch on(this);
    return body();
  }

  Heap* heap() const { return heap_; }

  // It never runs again; what it owned is ownerless.
  void end() { fake::end_thread(number_); }

 private:
  struct Switch {
    explicit Switch(Actor* to) : actor(to), before(fake::become(to->number_)), heap_before(own_heap_if_any()) {
      platform::set_thread_word(actor->heap_);
    }
    ~Switch() {
      actor->heap_ = own_heap_if_any();
      platform::set_thread_word(heap_before);
      fake::become(before);
    }
    Actor* actor;
    uint32_t before;
    Heap* heap_before;
  };

  uint32_t number_;
  Heap* heap_ = nullptr;
};

inline stats::Figures figures() {
  stats::Figures now;
  stats::gather(&now);
  return now;
}

inline Span* slab_of(const void* block) { return slab::head(g_realm.span_of(block)); }

// A different pattern for every seed, in words where there is room for them.
inline uint64_t pattern(size_t offset, unsigned seed) { return (offset + 1) * 0x9e3779b97f4a7c15 + seed; }

inline void fill(void* block, size_t size, unsigned seed) {
  char* bytes = static_cast<char*>(block);
  size_t offset = 0;
  for (; offset + 8 <= size; offset += 8) {
    uint64_t word = pattern(offset, seed);
    std::memcpy(bytes + offset, &word, 8);
  }
  uint64_t word = pattern(0, seed);
  std::memcpy(bytes + offset, &word, size - offset);
}

// The first `size` bytes of a block that was filled as one of `whole` bytes.
inline bool is_filled(const void* block, size_t size, unsigned seed, size_t whole) {
  const char* bytes = static_cast<const char*>(block);
  size_t offset = 0;
  for (; offset + 8 <= size; offset += 8) {
    uint64_t word = pattern(offset, seed);
    if (std::memcmp(bytes + offset, &word, 8) != 0) return false;
  }
  uint64_t word = pattern(offset + 8 <= whole ? offset : 0, seed);
  return std::memcmp(bytes + offset, &word, size - offset) == 0;
}

inline bool is_filled(const void* block, size_t size, unsigned seed) { return is_filled(block, size, seed, size); }

inline bool is_zero(const void* block, size_t size) {
  const unsigned char* bytes = static_cast<const unsigned char*>(block);
  return size == 0 || (bytes[0] == 0 && std::memcmp(bytes, bytes + 1, size - 1) == 0);
}

}  // namespace rh
