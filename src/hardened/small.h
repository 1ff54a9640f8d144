// Blocks in slabs as hardened builds hand them out, and the shortest way of malloc and of free: for a block of the
// calling thread's own heap whose bin has one, and that is freed as it should be. All else is hardened.cpp's.
#pragma once

#include "hardened/delay.h"
#include "hardened/tail.h"
#include "hardened/zeros.h"
#include "heap/heap.h"

namespace rh::hardened {

// Blocks up to here are delayed in the places of small ones.
inline constexpr size_t kMostDelayedSmall = 1024;

// A block in a slab, in anybody's hands or none's.
class Small {
 public:
  Small(Span* slab, void* block) : slab_(slab), block_(block), class_(slab->size_class.load()) {}
  explicit Small(void* block) : Small(slab::head(g_realm.span_of(block)), block) {}

  size_t size() const { return g_realm.sizes().noted(block_, is_smallest()); }
  size_t room() const { return size_class::kProperties[class_].size; }
  // Each block that nobody holds has a note of that: it was carved with one, or freed.
  bool is_free() const { return g_realm.sizes().is_noted_free(block_, is_smallest()); }
  Tail tail(size_t size) const { return {block_, size, room()}; }
  Tail tail() const { return tail(size()); }

  void set_size(size_t size) { g_realm.sizes().note(block_, size, is_smallest()); }

  // Its first bytes are the heap's.
  bool is_unwritten() const {
    const unsigned char* rest = static_cast<const unsigned char*>(block_) + sizeof(Block);
    return room() <= sizeof(Block) || is_clear(rest, room() - sizeof(Block));
  }

  void* hand_out(size_t size, Maker maker) {
    clear(block_, sizeof(Block));
    set_size(size);
    tail(size).write(maker);
    return block_;
  }

  void note_free() {
    g_realm.sizes().note_free(block_, is_smallest());
    clear(block_, room());
  }

  Heap* owner() const { return owner_of(slab_); }

 private:
  bool is_smallest() const { return class_ == 0; }

  Span* slab_;
  void* block_;
  size_t class_;
};

// Null where it takes longer.
RH_INLINE void* allocate_fast(size_t size, Maker maker) {
  if (RH_UNLIKELY(size - 1 >= kTableMax - Tail::kLength)) return nullptr;  // also of none
  Bin bin = bin_for(size + Tail::kLength);
  if (!bin.is_there()) return nullptr;
  Block* block = bin.heap->bins[bin.size_class];
  if (RH_UNLIKELY(block == nullptr)) return nullptr;
  Small small(slab::of_unwritten(block), block);
  if (RH_UNLIKELY(!small.is_unwritten())) return nullptr;
  Block* next = block->next;
  __builtin_prefetch(next, 1);
  bin.heap->bins[bin.size_class] = next;
  return small.hand_out(size, maker);
}

// To the heap, of what was kept from use. Not where somebody has written to the line that the heap is about to write
// to: nobody is to have it again. The rest is looked at when somebody is to.
void let_go(void* block);

RH_INLINE void let_go_fast(Heap* heap, void* block) {
  Span* slab = g_realm.span_of(block);
  if (RH_UNLIKELY(slab->owner.load() != heap)) return let_go(block);
  if (RH_UNLIKELY(!starts_clear(block, slab::properties(slab).size))) return let_go(block);
  if (free_own(heap, slab, static_cast<Block*>(block))) free_reached_mark(slab);
}

// False, and nothing done, where it takes longer.
RH_INLINE bool free_fast(void* block, Maker maker, size_t freed_as = kUnknown) {
  Span* slab = own_span(block);
  if (RH_UNLIKELY(slab == nullptr || !slab::starts_carved(slab, block))) return false;
  Small small(slab, block);
  size_t size = small.size();
  if (RH_UNLIKELY(small.is_free() || small.room() > kMostDelayedSmall)) return false;
  if (RH_UNLIKELY(!small.tail(size).is(maker) || (freed_as != kUnknown && freed_as != size))) return false;
  Heap* heap = thread_heap();
  if (RH_UNLIKELY(heap->shared)) return false;
  small.note_free();
  void* before = exchange(heap->delayed.small, block, g_quarantine.load(std::memory_order_relaxed));
  if (RH_LIKELY(before != nullptr)) let_go_fast(heap, before);
  return true;
}

}  // namespace rh::hardened
