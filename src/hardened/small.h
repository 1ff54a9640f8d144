// Blocks in slabs as hardened builds hand them out, and the shortest way of malloc and of free: for a block of the
// calling thread's own heap whose bin has one, and that is freed as it should be. All else is hardened.cpp's.
#pragma once

#include "hardened/delay.h"
#include "hardened/memory_tags.h"
#include "hardened/tail.h"
#include "hardened/zeros.h"
#include "heap/heap.h"

namespace rh::hardened {

// Blocks up to here are delayed in the places of small ones.
inline constexpr size_t kMostDelayedSmall = 1024;
static_assert(kTableMax <= kMostDelayedSmall, "what allocate_fast finds in a bin is not looked at as a long block is");

inline constexpr auto kSteps = [] {
  size_class::Table<Steps, size_class::kCount> table{};
  for (size_t index = 0; index < size_class::kCount; ++index)
    table.entries[index] = Steps::of(size_class::size_of(index));
  return table;
}();

// A block in a slab, in anybody's hands or none's.
class Small {
 public:
  RH_INLINE Small(Span* slab, void* block)
      : slab_(slab), block_(block), note_(note_of(block)), class_(slab->bin.load()) {}
  explicit Small(void* block) : Small(slab::head(g_realm.span_of(block)), block) {}

  RH_INLINE size_t size() const { return Sizes::noted_at(note_, is_smallest()); }
  // Whether a carved block starts there, of any address in the slab, or in its first unit.
  RH_INLINE bool starts() const { return slab::is_block(slab_, address_of(block_) - g_realm.address(slab_)); }
  RH_INLINE bool starts_near() const { return slab::starts_carved(slab_, block_); }

  void* block() const { return block_; }
  // Not of the smallest class, and among small blocks while it is delayed.
  bool is_ordinary() const { return class_ - 1 < size_class::computed(kMostDelayedSmall); }
  bool is_short() const { return class_ <= size_class::computed(Steps::kFew); }
  bool is_long() const { return class_ > size_class::computed(kMostDelayedSmall); }
  const Steps& steps() const { return kSteps[class_]; }
  size_t room() const { return steps().length; }
  // Each block that nobody holds has a note of that: it was carved with one, or freed.
  bool is_free() const { return g_realm.sizes().is_noted_free(block_, is_smallest()); }
  Tail tail(size_t size) const { return {block_, size, room()}; }
  Tail tail() const { return tail(size()); }

  RH_INLINE void set_size(size_t size) { Sizes::note_at(note_, size, is_smallest()); }

  // Takes the heap's words out of it; then, whether nobody has written to the rest. A long one that nobody has had is
  // not looked at: much of it may never be touched. `kMayBeLong`: not where it comes from a short one's bin.
  template <bool kMayBeLong = true> RH_INLINE bool becomes_clear() {
    *static_cast<Sixteen*>(block_) = Sixteen{};
    if (RH_LIKELY(is_short())) return is_clear_few(block_, steps());
    if (!kMayBeLong || !is_long()) return is_clear_many(block_, room());
    return g_realm.sizes().is_noted_fresh(block_, false) || is_clear_long(block_, room());
  }

  // One that has become clear. `kWhole`: there is room for a whole tail.
  template <bool kWhole = false> RH_INLINE void* hand_out(size_t size, Maker maker) {
    unsigned tag = memory_tags::has_tag(slab_) ? platform::random_tag(memory_tags::excluded(slab_, block_)) : 0;
    set_size(size);
    if constexpr (kWhole)
      tail(size).write_whole(maker);
    else
      tail(size).write(maker);
    return tag == 0 ? block_ : memory_tags::cover(block_, tag, size, room());
  }

  RH_INLINE void note_free() {
    Sizes::note_free_at(note_, is_smallest(), memory_tags::take(block_, room()));
    if (RH_LIKELY(is_short())) return clear_few(block_, steps());
    return is_long() ? clear_long(block_, room()) : clear_many(block_, room());
  }

  // Within its room. What is no longer the user's, or not yet, reads as zero.
  void resize(size_t before, size_t size) {
    const size_t from = size < before ? size : before;
    __builtin_memset(static_cast<unsigned char*>(block_) + from, 0, room() - from);
    set_size(size);
    tail(size).write(Maker::c);
  }

  Heap* owner() const { return owner_of(slab_); }

 private:
  bool is_smallest() const { return class_ == 0; }
  RH_INLINE static uint8_t* note_of(const void* block) {
    uint8_t* note = g_realm.sizes().of(block);
    asm("" : "+r"(note));  // compilers would keep its two parts, in a register each
    return note;
  }

  Span* slab_;
  void* block_;
  uint8_t* note_;
  size_t class_;
};

// Whether the size classes of a table are enough; not for blocks of no bytes.
RH_INLINE bool has_bin(size_t size) { return RH_LIKELY(size - 1 < kTableMax - Tail::kLength); }

// Says that a free block was written to, which nobody is to have; null.
RH_COLD void* give_up(void* block);

// Of a bin its first block, which is as the heap left it, and in a slab; null when the rest of it is not.
template <bool kMayBeLong> RH_INLINE void* pop_from(Bin bin, Span* slab, Block* block, size_t size, Maker maker) {
  Small small(slab, block);
  Block* next = block->next;
  __builtin_prefetch(next, 1);
  bin.heap->bins[bin.size_class] = next;
  if (RH_UNLIKELY(!small.becomes_clear<kMayBeLong>())) return give_up(block);
  return small.hand_out<true>(size, maker);
}

// From the bin that serves the size and its tail. Null where it takes longer.
RH_INLINE void* allocate_from(Bin bin, size_t size, Maker maker) {
  Block* block = bin.heap->bins[bin.size_class];
  if (RH_UNLIKELY(block == nullptr)) return nullptr;
  Span* slab = slab::of_unwritten_near(block);
  return RH_LIKELY(slab != nullptr) ? pop_from<false>(bin, slab, block, size, maker) : nullptr;
}

// The same from the calling thread's heap.
RH_INLINE void* allocate_fast(size_t size, Maker maker) {
  if (!has_bin(size)) return nullptr;
  Bin bin = bin_for(size + Tail::kLength);
  return bin.is_there() ? allocate_from(bin, size, maker) : nullptr;
}

// The same from one that is the thread's own too.
RH_INLINE void* allocate_fast_in(Heap* heap, size_t size, Maker maker) {
  if (!has_bin(size)) return nullptr;
  return allocate_from({heap, platform::g_unset.classes[size + Tail::kLength].load()}, size, maker);
}

// The same of sizes above those, up to the longest that slabs serve. Null where it takes longer.
void* allocate_medium(size_t size, Maker maker);

// To the heap, of what was kept from use. Not where somebody has written to the line that the heap is about to write
// to: nobody is to have it again. The rest is looked at when somebody is to.
void let_go(void* block);

// The same by a thread that has no heap, or does not own the one that kept it from use.
void let_go_from_outside(void* block);

// To a heap of the thread's, which is to look at the slab when it is true. The block reads as zero.
RH_INLINE bool link_clear(Heap* heap, Span* slab, void* block) {
  Block* free = static_cast<Block*>(block);
  free->mark = slab::mark_of(slab, free);
  return slab::link_local(slab, free, &heap->bins[slab->bin.load()]);
}

RH_INLINE void let_go_fast(Heap* heap, void* block) {
  Span* slab = g_realm.span_of(block);
  if (RH_UNLIKELY(slab->owner.load() != heap)) return let_go(block);
  if (RH_UNLIKELY(!starts_clear(block, kSteps[slab->bin.load()]))) return let_go(block);
  if (link_clear(heap, slab, block)) free_reached_mark(slab);
}

// Whether it is as it was written: of a block in use, whose bytes have two tags.
RH_INLINE bool has_tail(const Tail& tail, uint64_t value) {
  platform::Unchecked unchecked;
  return tail.is_whole(value);
}

// Which blocks of a slab: any, or only those in its first unit.
enum class Which : uint8_t { near_ones, any };

// The size of a block, if it is live, with a whole tail of that maker; else kUnknown. Of any address in a slab that
// only this thread takes from; `pointer` is what the program has of it.
template <Which which> RH_INLINE size_t size_of_intact(const Small& small, const void* pointer, Maker maker) {
  if (RH_UNLIKELY(!(which == Which::any ? small.starts() : small.starts_near()))) return kUnknown;
  uint64_t value = Tail::value_of(small.block(), maker);
#if defined(__LP64__)
  asm("" : "+r"(value));  // before all else: it takes registers that would have to be saved
#endif
  // The note of one that is free is a longer size than that of any block.
  size_t size = small.size(), room = small.room();
  if (RH_UNLIKELY(size > room - Tail::kLength)) return kUnknown;
  bool intact = memory_tags::fits(pointer, small.block()) && has_tail(small.tail(size), value);
  return RH_LIKELY(intact) ? size : kUnknown;
}

// Ends an intact block of such a slab that is longer than kMostDelayedSmall, where blocks are kept from use.
void end_long(void* block);

// Ends any intact block of such a slab. False, and nothing done, where it takes longer. A template, for other builds
// see it too, whose heaps keep nothing from use.
template <typename Own> RH_INLINE bool end_intact(Own* heap, Small small) {
  if (RH_UNLIKELY(small.is_long())) {
    if (!heap->delayed.is_in_use) return false;
    end_long(small.block());
    return true;
  }
  unsigned at = heap->delayed.small.left;
  if (RH_UNLIKELY(at-- == 0)) {
    if (!heap->delayed.is_in_use) return false;  // the heap of a tag, which says so where the next turn begins
    at = g_quarantine.load(std::memory_order_relaxed) - 1;
  }
  small.note_free();
  void* before = exchange_at(heap->delayed.small, at, small.block());
  if (RH_LIKELY(before != nullptr)) let_go_fast(heap, before);
  return true;
}

// The same of any, whose end is as it should be if it is done.
template <Which which, typename Own>
RH_INLINE bool free_in(Own* heap, Span* slab, void* block, const void* pointer, Maker maker, size_t freed_as) {
  Small small(slab, block);
  size_t size = size_of_intact<which>(small, pointer, maker);
  if (RH_UNLIKELY(size == kUnknown || (freed_as != kUnknown && freed_as != size))) return false;
  return end_intact(heap, small);
}

// How far the shortest way led. `seldom`: nowhere, and free_seldom is to be asked; `not_here`: nowhere.
enum class Led : uint8_t { to_its_end, seldom, not_here };
template <typename Own = Heap> RH_INLINE Led free_fast(void* pointer, Maker maker, size_t freed_as = kUnknown) {
  void* block = memory_tags::plain(pointer);
  Span* slab = own_span(block);
  if (RH_UNLIKELY(slab == nullptr)) return Led::not_here;
  // Asked once, by the class: others have notes of another length, or wait elsewhere.
  if (RH_UNLIKELY(!Small(slab, block).is_ordinary())) return Led::seldom;
  const bool done = free_in<Which::near_ones, Own>(thread_heap(), slab, block, pointer, maker, freed_as);
  return RH_LIKELY(done) ? Led::to_its_end : Led::not_here;
}

// The same of a block of the smallest class, or one that is long.
bool free_seldom(void* pointer, Maker maker, size_t freed_as);

// The same of any block in a slab of the thread's, and of those that have a type.
bool free_own_block(void* pointer, Maker maker, size_t freed_as);

// Resizes such a block of malloc's where it lies, if it may stay there, or moves one of the thread's heap. Null, and
// nothing done, where it takes longer.
void* resize_own_block(void* pointer, size_t size);

// The size of a live block in the first unit of a slab of the thread's; else kUnknown.
RH_INLINE size_t size_of_own_block(const void* pointer) {
  void* block = memory_tags::plain(pointer);
  Span* slab = own_span(block);
  if (RH_UNLIKELY(slab == nullptr)) return kUnknown;
  const Small small(slab, block);
  if (RH_UNLIKELY(!small.starts_near())) return kUnknown;
  // The note of one that is free is a longer size than that of any block.
  const size_t size = small.size();
  return RH_LIKELY(size <= small.room() && memory_tags::fits(pointer, block)) ? size : kUnknown;
}

}  // namespace rh::hardened
