#include "hardened/small.h"

#include "hardened/misuse.h"

namespace rh::hardened {

constinit std::atomic<unsigned> g_quarantine{kQuarantine};

// Of the slab of a block that somebody holds: its heap, if that is not the thread's own and bound to it.
static Heap* heap_bound_to_me(const Span* slab) {
  Heap* owner = slab->owner.load_acquire();  // may have adopted the slab meanwhile
  const bool is_heap = owner != nullptr && without_notes(owner) == owner;
  return is_heap && is_bound_to_me(owner) ? owner : nullptr;
}

void* give_up(void* block) {
  tell_written(block, Small(block).room());
  return nullptr;
}

void* allocate_medium(size_t size, Maker maker) {
  const size_t whole = size + Tail::kLength;
  if (whole <= kTableMax || whole - kTableMax - 1 >= platform::g_unset.medium_sizes.load()) return nullptr;
  Bin bin = {thread_heap(), size_class::computed(whole)};
  if (!bin.is_there()) return nullptr;
  Block* block = bin.heap->bins[bin.size_class];
  return block != nullptr ? pop_from(bin, slab::of_unwritten(block), block, size, maker) : nullptr;
}

bool free_typed(void* pointer, Maker maker, size_t freed_as) {
  void* block = memory_tags::plain(pointer);
  if (!g_realm.holds(block)) return false;
  Span* slab = g_realm.span_of(block);
  if (slab->kind.load() != SpanKind::slab) return false;
  const Heap* owner = heap_bound_to_me(slab);
  return owner != nullptr && !is_first_class(owner) && free_in(thread_heap(), slab, block, pointer, maker, freed_as);
}

void* resize_fast(void* pointer, size_t size) {
  void* block = memory_tags::plain(pointer);
  Span* slab = own_span(block);
  if (platform::has_tags() || slab == nullptr || !has_bin(size)) return nullptr;
  if (!fits_in_place(size + Tail::kLength, slab::properties(slab).size, Fit::close)) return nullptr;
  const size_t before = size_of_intact(slab, block, pointer, Maker::c);
  if (before == kUnknown) return nullptr;
  Small(slab, block).resize(before, size);
  return block;
}

void let_go(void* block) {
  if (block == nullptr) return;
  Span* slab = slab::head(g_realm.span_of(block));
  const Steps& steps = kSteps[slab->size_class.load()];
  if (RH_UNLIKELY(!starts_clear(block, steps))) return tell_written(block, steps.length);
  if (Heap* owner = heap_bound_to_me(slab)) {
    if (link_clear(owner, slab, block)) bound_reached_mark(owner, slab);
    return;
  }
  if (!rh::deallocate_fast(block) && !rh::deallocate_otherwise(block)) rh::deallocate_slow(block);
}

}  // namespace rh::hardened
