// What the layer above calls: blocks of the calling thread's heap, and of first-class ones. A heap's fields, and the
// order of this folder, are in types.h.
//
//   malloc  allocate ─ pop the class's bin ────────────────────────────────→ block
//             └ bin empty: allocate_slow ─ refill (heap's lock) ─ drain inbox, then blocks from
//                 the current slab → the next available slab → an orphan's → the store → the arena
//   free    deallocate_fast ─ slab is mine: link into it, count ─────────────→ done
//             ├ count reached: free_reached_mark (heap's lock) ─ make available, or release
//             └ not mine: deallocate_slow ─ batch for its owner → one push to its inbox a batch
//                                         ├ large block → the store it came from, or the arena
//                                         └ not ours → whoever made it (entry/foreign)
#pragma once

#include "heap/block.h"
#include "heap/types.h"

namespace rh {

// Keeps what was asked for of a block in a slab, where that is kept. In hardened builds the layer above does so, when
// it has looked at what was noted of the block before.
RH_INLINE void* noted(Block* block, SizeClass size_class, size_t size) {
  if constexpr (kExactSizes && !kHardened) {
    if (RH_LIKELY(block != nullptr)) g_realm.sizes().note(block, size, size_class == 0);
  }
  return block;
}

// The bin that serves a size up to kTableMax; of no heap, where the calling thread may have none.
struct Bin {
  Heap* heap;
  size_t size_class;

  RH_INLINE bool is_there() const { return !platform::kUnsetIsNull || RH_LIKELY(heap != nullptr); }
};
RH_INLINE Bin bin_for(size_t size) {
  uintptr_t address = platform::unset_address();
  size_t size_class = reinterpret_cast<const platform::Unset*>(address)->classes[size].load();
  platform::go_to_thread_word(address);
  return {reinterpret_cast<Heap*>(address), size_class};
}

// A block for `size`, of the class of `rounded`, up to kTableMax.
RH_INLINE void* pop_for(size_t rounded, size_t size) {
  Bin bin = bin_for(rounded);
  if (!bin.is_there()) return nullptr;
  return noted(pop(bin.heap, bin.size_class), static_cast<SizeClass>(bin.size_class), size);
}

RH_INLINE void* allocate_fast(size_t size) { return RH_LIKELY(size <= kTableMax) ? pop_for(size, size) : nullptr; }

// The same for sizes above kTableMax, up to kMaxSmall.
RH_INLINE void* allocate_medium_fast(size_t size) {
  if (RH_UNLIKELY(size - kTableMax - 1 >= platform::g_unset.medium_sizes.load())) return nullptr;
  uintptr_t address = platform::unset_address();
  platform::go_to_thread_word(address);
  Heap* heap = reinterpret_cast<Heap*>(address);
  if (platform::kUnsetIsNull && RH_UNLIKELY(heap == nullptr)) return nullptr;
  SizeClass size_class = size_class::of_medium(size);
  return noted(pop(heap, size_class), size_class, size);
}

// `alignment` is a power of two, or 0, for which there is nothing here.
RH_INLINE void* allocate_aligned_fast(size_t alignment, size_t size) {
  size_t last = (size - 1) | (alignment - 1);  // the size rounded up, less one; the largest number where either is 0
  return RH_LIKELY(last < kTableMax) ? pop_for(last + 1, size) : nullptr;
}

// Any size; null when out of memory. Never changes errno.
void* allocate_slow(size_t size);

RH_INLINE void* allocate(size_t size) {
  void* block = allocate_fast(size);
  return RH_LIKELY(block != nullptr) ? block : allocate_slow(size);
}

void* allocate_zeroed(size_t size);

// `alignment` is a power of two up to kMaxAlignment.
void* allocate_aligned(size_t alignment, size_t size);

// From a heap that is bound to the calling thread.
RH_INLINE void* allocate_in_fast(Heap* heap, size_t size) {
  if (RH_UNLIKELY(size > kTableMax || !is_mine(heap))) return nullptr;
  SizeClass size_class = platform::g_unset.classes[size].load();
  return noted(pop(heap, size_class), size_class, size);
}

// Whether the calling thread may allocate from a first-class heap. One that is bound to another thread becomes its own
// where that has ended, else ends the process. False when the caller has no heap of its own, for want of memory.
bool take_up(Heap* bound);
inline bool may_take_from(Heap* heap) { return !is_bound(heap) || is_mine(heap) || take_up(heap); }

// From a first-class heap; from the calling thread's when that is null.
void* allocate_in(Heap* heap, size_t alignment, size_t size, bool zeroed);

// Many blocks from a first-class heap that the calling thread may allocate from, by the shortest way. Gives how many:
// fewer, or none, where there is more to it; then allocate_in is to be asked for the next. Not in hardened builds.
size_t allocate_many_in(Heap* heap, size_t size, void** blocks, size_t count);

// Gives back all that a first-class heap has, and the heap.
void destroy_heap(Heap* heap);

// All but the heap.
void reset_heap(Heap* heap);

// A first-class heap bound to the calling thread. Null when out of memory.
Heap* create_bound_heap();

RH_COLD void free_reached_mark(Span* slab);

// The span of an address that the calling thread owns; null for any other. Of a slab only the first unit has an owner.
RH_INLINE Span* own_span(const void* pointer) {
  if (RH_UNLIKELY(!g_realm.holds(pointer))) return nullptr;
  Span* span = g_realm.span_of(pointer);
  Heap* heap = thread_heap();
  if (RH_UNLIKELY(span->owner.load() != heap)) return nullptr;
  if (platform::kUnsetIsNull && RH_UNLIKELY(heap == nullptr)) return nullptr;
  return span;
}

// Of an address in a slab's first unit: whether it can be freed as the block that it should be. The slow path says why
// not.
RH_INLINE bool can_free(const Span* slab, const void* pointer) {
  return slab::starts_block(slab, pointer) && !slab::is_marked(slab, static_cast<const Block*>(pointer));
}

// Frees a block of the calling thread's own. False, and nothing done, when it is anything else: then deallocate_slow is
// to be asked.
RH_INLINE bool deallocate_fast(void* pointer) {
  Span* span = own_span(pointer);
  if (RH_UNLIKELY(span == nullptr || !can_free(span, pointer))) return false;
  if (free_own(thread_heap(), span, static_cast<Block*>(pointer))) free_reached_mark(span);
  return true;
}

// Frees a block that starts in `unit`, a later one of a slab of the calling thread's own. False, and nothing done, for
// anything else.
RH_INLINE bool deallocate_later(Span* unit, Block* block) {
  Span* slab = unit - unit->units;
  Heap* heap = thread_heap();
  bool own = slab->owner.load() == heap && slab->kind.load() == SpanKind::slab;
  if (RH_UNLIKELY(!own || slab::is_marked(slab, block))) return false;
  if (RH_UNLIKELY(!slab::is_block(slab, address_of(block) - g_realm.address(slab)))) return false;
  if (free_own(heap, slab, block)) free_reached_mark(slab);
  return true;
}

// Frees a block in the first unit of a slab that a heap bound to the calling thread has, or its own while a tag is in
// force. False, and nothing done, for anything else.
RH_COLD void bound_reached_mark(Heap* heap, Span* slab);
RH_INLINE bool deallocate_bound(Span* slab, Block* block) {
  Heap* owner = slab->owner.load_acquire();  // may have adopted the slab meanwhile
  if (owner == nullptr || without_notes(owner) != owner) return false;
  if (!is_bound_to_me(owner) && owner != own_heap_if_any()) return false;
  if (RH_UNLIKELY(!can_free(slab, block))) return false;
  if (free_own(owner, slab, block)) bound_reached_mark(owner, slab);
  return true;
}

// Either of these, at the price of little more than deallocate_fast. False, and nothing done, for any other pointer.
RH_INLINE bool deallocate_otherwise(void* pointer) {
  if (RH_UNLIKELY(!g_realm.holds(pointer))) return false;
  Span* span = g_realm.span_of(pointer);
  const SpanKind kind = span->kind.load();
  Block* block = static_cast<Block*>(pointer);
  if (kind == SpanKind::interior) return deallocate_later(span, block);
  return kind == SpanKind::slab && deallocate_bound(span, block);
}

// What became of a pointer. `foreign`: nothing; it is not ours, and the caller must route it.
enum class Freed { done, foreign };
RH_COLD Freed deallocate_slow(void* pointer);

// What was asked for of a block in a slab of the calling thread's own, with kExactSizes; else its usable size. False
// for any other pointer: then requested_size is to be asked.
RH_INLINE bool requested_size_fast(const void* pointer, size_t* size) {
  Span* slab = own_span(pointer);
  if (RH_UNLIKELY(slab == nullptr)) return false;
  *size = slab::requested_size(slab, pointer);
  return true;
}

// The usable size of a block in a slab, whoever owns it. False for what may be no live one: then usable_size is to be
// asked.
RH_INLINE bool usable_size_fast(const void* pointer, size_t* size) {
  if (RH_UNLIKELY(!g_realm.holds(pointer) || address_of(pointer) % kBlockAlign != 0)) return false;
  const Span* slab = g_realm.span_of(pointer);
  if (slab->kind.load() == SpanKind::interior) slab -= slab->units;
  if (RH_UNLIKELY(slab->kind.load() != SpanKind::slab)) return false;
  if (RH_UNLIKELY(slab::is_marked(slab, static_cast<const Block*>(pointer)))) return false;
  *size = slab::properties(slab).size;
  return true;
}

// The slab of a live block of the calling thread's own; null for anything else.
RH_INLINE Span* own_live_slab(const void* pointer) {
  Span* span = own_span(pointer);
  if (RH_UNLIKELY(span == nullptr)) return nullptr;
  bool live = slab::is_live(span, pointer, address_of(pointer) % kUnitSize);
  return RH_LIKELY(live) ? span : nullptr;
}

// Frees a block of a slab that the calling thread does not own, which has `heap`, or none. True when memory may have
// become free: idle::note_free() is to be called then.
bool free_from_outside(Heap* heap, Span* slab, Block* block);

// Frees any live block of ours and notes it as free. False, and nothing done, when it is none as far as can be told.
bool deallocate_live(void* pointer);

inline Freed deallocate(void* pointer) {
  return RH_LIKELY(deallocate_fast(pointer)) ? Freed::done : deallocate_slow(pointer);
}

// Whether it is the start of a block of ours in somebody's hands, as far as find_block can tell.
inline bool is_live(const void* pointer) { return find_block(pointer).is_live(); }

inline size_t usable_size(const void* pointer, const char* function) {
  return known_block(pointer, function).usable_size();
}

// What was asked for, with kExactSizes; else the usable size.
inline size_t requested_size(const void* pointer, const char* function) {
  return known_block(pointer, function).requested_size();
}

// The start of the block that `pointer` lies in, anywhere.
void* block_start(const void* pointer, const char* function);

// Whether any address at all lies in a slab or large block.
inline bool owns(const void* pointer) {
  BlockAt at = find_block(pointer);
  if (at.span == nullptr || at.is_small()) return at.span != nullptr;
  return at.is_large() ? !large::is_delayed(at.span) : guards::is_live(at.span);
}

// Whether a block in a slab may stay where it lies. One that would leave more than a quarter unused moves to its own
// class, unless that had none to begin with.
inline bool fits_in_place(size_t size, size_t usable, Fit fit) {
  const bool wasteful = size < usable / 4 * 3 && usable > size_class::size_of(size_class::kLeastLender);
  return size <= usable && (fit == Fit::loose || !wasteful);
}

// Resizes in place, or null: then the block must move.
void* resize_in_place(const BlockAt& at, size_t size, Fit fit = Fit::close);

// Cuts a large block by copying what stays of it, where that is better; null: then it is cut in place.
void* resize_by_copying(const BlockAt& at, size_t size);

// Resizes by moving pages of a large block to a new place, or null: then the content must be copied.
void* resize_by_moving(const BlockAt& at, size_t size);

// The usable size of a request of `size`; 0 when it cannot be met.
size_t good_size(size_t size);

// From now on another allocator makes all blocks but those of the program's heaps. Null: none does.
using Allocate = void*(size_t alignment, size_t size);
void leave_to(Allocate* other);
bool is_left_to_other();

// Its block; none while nothing is left to another.
struct MadeElsewhere {
  bool is_left;
  void* block;  // null: it has no memory
};
MadeElsewhere allocate_elsewhere(size_t alignment, size_t size, bool zeroed);

// The calling thread's heap; made or adopted at first. Null when there is no memory for it.
Heap* own_heap();

}  // namespace rh
