// Threads simulated by one, and what the heap layer's tests need to know about heaps.
#pragma once

#include <vector>

#include "heap/heap.h"
#include "heap/stats.h"
#include "platform/fake/fake.h"
#include "support/pattern.h"

namespace rh {

// A simulated thread with its own token and heap; the calling thread plays it while it runs a body.
class Actor {
 public:
  explicit Actor(uint32_t token = 0) : number_(fake::make_thread(token)) {}
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;

  template <typename Body> auto operator()(Body body) {
    Switch on(this);
    return body();
  }

  Heap* heap() const { return heap_; }

  // It never runs again; what it owned is ownerless.
  void end() { fake::end_thread(number_); }

 private:
  struct Switch {
    explicit Switch(Actor* to) : actor(to), before(fake::become(to->number_)), heap_before(heap_in_use_if_any()) {
      platform::set_thread_word(actor->heap_);
    }
    ~Switch() {
      actor->heap_ = heap_in_use_if_any();
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

inline std::vector<void*> used_blocks(size_t size, size_t bytes) {
  std::vector<void*> blocks;
  for (size_t sum = 0; sum < bytes; sum += size) {
    blocks.push_back(allocate(size));
    std::memset(blocks.back(), 1, size);
  }
  return blocks;
}

// Runs the helper until it ends, or for this long.
inline uint64_t step_for(uint64_t most_ms) {
  uint64_t begin = platform::now_ms();
  while (platform::now_ms() - begin < most_ms && fake::step_helper()) continue;
  return platform::now_ms() - begin;
}

inline void free_as_a_program_does(void* block) {
  if (!deallocate_fast(block) && !deallocate_otherwise(block)) deallocate_slow(block);
}

using contract::all_zero, contract::fill, contract::intact;

inline void free_all(const std::vector<void*>& blocks) {
  for (void* block : blocks) deallocate(block);
}

}  // namespace rh
