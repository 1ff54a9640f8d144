#include "hardened/small.h"

#include "hardened/misuse.h"

namespace rh::hardened {

constinit std::atomic<unsigned> g_quarantine{kQuarantine};

// Of the slab of a block that somebody holds: its heap, if only this thread takes from it.
RH_INLINE static Heap* heap_of_mine(const Span* slab) {
  Heap* owner = slab->owner.load_acquire();  // may have adopted the slab meanwhile
  if (owner == nullptr || without_notes(owner) != owner) return nullptr;
  return owner == thread_heap() || is_bound_to_me(owner) ? owner : nullptr;
}

// That slab, of a pointer into one whose blocks are kept from use when they are freed; else null.
RH_INLINE static Span* slab_of_mine(const void* block) {
  if (!g_realm.holds(block)) return nullptr;
  Span* slab = slab::head(g_realm.span_of(block));
  if (slab->kind.load() != SpanKind::slab) return nullptr;
  const Heap* heap = heap_of_mine(slab);
  return heap != nullptr && !is_first_class(heap) ? slab : nullptr;
}

void* give_up(void* block) {
  tell_written(block, Small(block).room());
  return nullptr;
}

void* allocate_medium(size_t size, Maker maker) {
  const size_t whole = size + Tail::kLength;
  if (whole <= kTableMax || whole - kTableMax - 1 >= platform::g_unset.medium_sizes.load()) return nullptr;
  Bin bin = {thread_heap(), size_class::of_medium(whole)};
  if (bin.heap == nullptr) return nullptr;  // a thread's first, or before thread-local storage is there
  Block* block = bin.heap->bins[bin.size_class];
  return block != nullptr ? pop_from<true>(bin, slab::of_unwritten(block), block, size, maker) : nullptr;
}

// Whether nothing was written to its start since it was freed. Tells of what was.
RH_INLINE static bool stayed_clear(const Span* slab, void* block) {
  const Steps& steps = kSteps[slab->bin.load()];
  if (RH_LIKELY(starts_clear(block, steps))) return true;
  tell_written(block, steps.length);
  return false;
}

RH_INLINE static void let_go_here(void* block) {
  if (block == nullptr) return;
  Span* slab = slab::head(g_realm.span_of(block));
  if (!stayed_clear(slab, block)) return;
  if (Heap* heap = heap_of_mine(slab)) {
    if (!link_clear(heap, slab, block)) return;
    return heap == thread_heap() ? free_reached_mark(slab) : bound_reached_mark(heap, slab);
  }
  if (!rh::deallocate_fast(block) && !rh::deallocate_otherwise(block)) rh::deallocate_slow(block);
}

void let_go(void* block) { let_go_here(block); }

void let_go_from_outside(void* block) {
  Span* slab = slab::head(g_realm.span_of(block));
  // Whoever calls this returns memory next: the idle helper need not hear of it.
  if (stayed_clear(slab, block)) free_from_outside(nullptr, slab, static_cast<Block*>(block));
}

RH_INLINE static void end_long_here(Small small) {
  small.note_free();
  let_go_here(exchange(thread_heap()->delayed.medium, small.block()));
}

void end_long(void* block) { end_long_here(Small(block)); }

bool free_seldom(void* pointer, Maker maker, size_t freed_as) {
  void* block = memory_tags::plain(pointer);
  const Small small(g_realm.span_of(block), block);
  const size_t size = size_of_intact<Which::near_ones>(small, pointer, maker);
  if (RH_UNLIKELY(size == kUnknown || (freed_as != kUnknown && freed_as != size))) return false;
  if (!small.is_long()) return end_intact(thread_heap(), small);
  if (!thread_heap()->delayed.is_in_use) return false;
  end_long_here(small);
  return true;
}

bool free_own_block(void* pointer, Maker maker, size_t freed_as) {
  void* block = memory_tags::plain(pointer);
  Span* slab = slab_of_mine(block);
  return slab != nullptr && free_in<Which::any>(thread_heap(), slab, block, pointer, maker, freed_as);
}

// Whether the slab's blocks are the thread's heap's, and kept from use when they are freed: not those of a tag.
static bool may_move_from(const Span* slab) {
  const Heap* heap = thread_heap();
  return slab->owner.load() == heap && heap->delayed.is_in_use;
}

// Null where there is no block for it at hand. An intact one of such a slab.
RH_NOINLINE static void* move(const Small& small, size_t before, size_t size) {
  void* copy = allocate_fast(size, Maker::c);
  if (copy == nullptr) copy = allocate_medium(size, Maker::c);
  if (copy == nullptr) return nullptr;
  __builtin_memcpy(copy, small.block(), size < before ? size : before);
  end_intact(thread_heap(), small);
  return copy;
}

void* resize_own_block(void* pointer, size_t size) {
  void* block = memory_tags::plain(pointer);
  Span* slab = platform::has_tags() || size - 1 >= kMaxSmall - Tail::kLength ? nullptr : slab_of_mine(block);
  if (slab == nullptr) return nullptr;
  Small small(slab, block);
  const bool stays = fits_in_place(size + Tail::kLength, slab::properties(slab).size, Fit::close);
  if (!stays && !may_move_from(slab)) return nullptr;
  const size_t before = size_of_intact<Which::any>(small, pointer, Maker::c);
  if (before == kUnknown) return nullptr;
  if (!stays) return move(small, before, size);
  small.resize(before, size);
  return block;
}

}  // namespace rh::hardened
