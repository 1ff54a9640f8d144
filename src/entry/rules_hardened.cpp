// The rules as hardened builds keep them.
#include "entry/rules.h"
#include "hardened/small.h"
#include "heap/idle.h"
#include "heap/tags.h"

namespace rh::rules {

static void* allocate_slowly(size_t alignment, size_t size, Maker maker, Heap* heap, bool zeroed) {
  start();
  if (alignment < kBlockAlign) alignment = kBlockAlign;
  if (heap == nullptr)
    if (const MadeElsewhere made = allocate_elsewhere(alignment, size, zeroed); made.is_left) return made.block;
  return hardened::allocate(heap, alignment, size, maker, zeroed);
}

void* allocate_hardened(size_t size, Maker maker, bool zeroed) {
  void* block = hardened::allocate_fast(size, maker);
  return RH_LIKELY(block != nullptr) ? block : allocate_otherwise(size, maker, zeroed);
}

void* allocate_otherwise(size_t size, Maker maker, bool zeroed) {
  if (void* block = hardened::allocate_medium(size, maker)) return block;
  return allocate_slowly(kBlockAlign, size, maker, nullptr, zeroed);
}

void* allocate_hardened(size_t alignment, size_t size, Maker maker, Heap* heap, bool zeroed) {
  if (heap == nullptr && alignment <= kBlockAlign) return allocate_hardened(size, maker, zeroed);
  return allocate_slowly(alignment, size, maker, heap, zeroed);
}

RH_NOINLINE void free_otherwise(void* block, Maker maker, size_t size) {
  if (block == nullptr || hardened::free_own_block(block, maker, size)) return;
  if (hardened::free(block, maker, size) == Freed::foreign && !free_in_region(block, size)) g_foreign.free(block);
}

RH_NOINLINE void free_seldom_one(void* block, Maker maker, size_t size) {
  if (!hardened::free_seldom(block, maker, size)) free_otherwise(block, maker, size);
}

void free_hardened(void* block, Maker maker, size_t size) { rules::free(block, maker, size); }

void* reallocate_hardened(void* block, size_t size) {
  if (void* resized = hardened::resize_own_block(block, size)) return resized;
  size_t present = hardened::size_of(block, "realloc");
  // One without bytes cannot grow.
  auto resize = [=] { return present != 0 ? hardened::resize(block, size) : nullptr; };
  void* resized =
      reallocate_by(block, present, size, resize, [=] { return allocate_beside(block, kBlockAlign, size); });
  return or_shortened(resized, present, size,
                      [=] { return hardened::resize(block, size, hardened::Resize::stays_loose); });
}

void* reallocate_aligned_hardened(void* block, size_t alignment, size_t size) {
  size_t present = hardened::size_of(block, "rh_aligned_realloc");
  const bool fits = present != 0 && address_of(hardened::memory_tags::plain(block)) % alignment == 0;
  auto resize = [=] { return fits ? hardened::resize(block, size, hardened::Resize::stays) : nullptr; };
  return reallocate_by(block, present, size, resize, [=] { return checked(allocate_beside(block, alignment, size)); });
}

size_t expand_hardened(void* block, size_t size) {
  const size_t present = hardened::size_of(block, "rh_expand");
  if (size <= present) return present;
  const bool grows = present != 0 && hardened::resize(block, size, hardened::Resize::stays_loose) != nullptr;
  return grows ? size : 0;
}

// ---- partitions ---------------------------------------------------------------------------------

// Null when there is no memory for it: then nothing of that partition can be allocated, for it may lie nowhere else.
static Heap* heap_of(Partition partition) {
  if (Heap* heap = tags::heap_for(own_heap_if_any(), partition)) return heap;
  start();
  if (Heap* heap = tags::heap_for(own_heap(), partition)) return heap;
  idle::reclaim();
  return tags::heap_for(own_heap(), partition);
}

void* allocate_typed(Partition partition, size_t alignment, size_t size, Maker maker, bool zeroed) {
  if (partition == kUntyped) return allocate_hardened(alignment, size, maker, nullptr, zeroed);
  Heap* heap = heap_of(partition);
  if (RH_UNLIKELY(heap == nullptr)) return nullptr;
  void* block = alignment <= kBlockAlign ? hardened::allocate_fast_in(heap, size, maker) : nullptr;
  return RH_LIKELY(block != nullptr) ? block : allocate_hardened(alignment, size, maker, heap, zeroed);
}

void* allocate_beside(const void* block, size_t alignment, size_t size) {
  if (Heap* heap = hardened::heap_beside(block)) return allocate_hardened(alignment, size, Maker::c, heap);
  return allocate_typed(hardened::partition_of(block), alignment, size, Maker::c);
}

void* reallocate_typed(Partition partition, void* block, size_t size) {
  if (hardened::partition_of(block) == partition) return reallocate_hardened(block, size);
  const size_t present = hardened::size_of(block, "realloc");  // says so if it is no block, whose heap nobody knows
  if (hardened::heap_beside(block) != nullptr) return reallocate_hardened(block, size);
  auto allocate = [=] { return checked(allocate_typed(partition, kBlockAlign, size, Maker::c)); };
  return reallocate_by(block, present, size, [] { return nullptr; }, allocate);
}

}  // namespace rh::rules
