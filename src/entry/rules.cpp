#include "entry/rules.h"

#include "heap/idle.h"
#include "platform/report.h"

namespace rh::rules {

void* allocate_cold(size_t size) {
  if constexpr (kHardened) return checked(allocate_otherwise(size, Maker::c));
  if (void* block = allocate_medium_fast(size)) return block;
  start();
  return checked(rh::allocate_slow(size));
}

RH_NOINLINE static void free_elsewhere(void* block) {
  if (rh::deallocate_slow(block) == Freed::foreign && !free_in_region(block)) g_foreign.free(block);
}

void free_cold(void* block) {
  if (!deallocate_otherwise(block)) free_elsewhere(block);
}

void* allocate_zeroed(size_t count, size_t size) {
  size_t bytes = 0;
  if (!product(count, size, &bytes)) return out_of_memory();
  if constexpr (kHardened) return checked(allocate_hardened(bytes, Maker::c, true));
  if (void* block = allocate_fast(bytes)) return __builtin_memset(block, 0, bytes);
  start();
  return checked(rh::allocate_zeroed(bytes));
}

void* allocate_aligned(size_t alignment, size_t size) {
  if constexpr (kHardened) {
    if (alignment > kMaxAlignment || size > kMaxRequest) return out_of_memory();
    return checked(allocate_hardened(alignment, size, Maker::c));
  }
  if (void* block = allocate_aligned_fast(alignment, size)) return block;
  if (alignment > kMaxAlignment) return out_of_memory();
  start();
  return checked(rh::allocate_aligned(alignment, size));
}

static size_t usable_size_elsewhere(const void* block) {
  if (Region* region = regions::find(block)) return size_in_region(region, block, "malloc_usable_size");
  return g_foreign.usable_size(const_cast<void*>(block));
}

[[maybe_unused]] RH_NOINLINE static size_t usable_size_otherwise(const void* block) {
  if constexpr (kHardened)
    if (hardened::holds(block)) return hardened::size_of(block, "malloc_usable_size");
  return block != nullptr ? usable_size_elsewhere(block) : 0;
}

size_t usable_size(const void* block) {
  if constexpr (kHardened) {
    const size_t asked = hardened::size_of_own_block(block);
    return RH_LIKELY(asked != hardened::kUnknown) ? asked : usable_size_otherwise(block);
  }
  size_t size = 0;
  if (block == nullptr || usable_size_fast(block, &size)) return size;
  if (!in_realm(block)) return usable_size_elsewhere(block);
  return rh::usable_size(block, "malloc_usable_size");
}

// A block of a first-class heap stays in it.
static void* allocate_beside(const BlockAt& at, size_t alignment, size_t size) {
  if (Heap* heap = shared::heap_beside(at.span)) return heap_allocate(heap, alignment, size, false);
  return alignment <= kBlockAlign ? allocate(size) : allocate_aligned(alignment, size);
}

void* reallocate_elsewhere(void* block, size_t size) {
  if (Region* region = regions::find(block)) return reallocate_in_region(region, block, kBlockAlign, size);
  return g_foreign.reallocate(block, size);
}

void* reallocate(void* block, size_t size) {
  if (block == nullptr) return allocate(size);
  if constexpr (kHardened)
    if (hardened::holds(block)) return reallocate_hardened(block, size);
  if (!in_realm(block)) return reallocate_elsewhere(block, size);
  BlockAt at = known_block(block, "realloc");
  auto resize = [=] {
    if (void* copy = resize_by_copying(at, size)) return copy;
    void* resized = resize_in_place(at, size);
    return resized != nullptr ? resized : resize_by_moving(at, size);
  };
  auto allocate = [=] {
    Heap* heap = shared::heap_beside(at.span);
    return heap != nullptr ? allocate_in(heap, kBlockAlign, size, false) : rh::allocate(size);
  };
  const size_t present = at.usable_size();
  void* resized = reallocate_by(block, present, size, resize, allocate);
  return or_shortened(resized, present, size, [=] { return resize_in_place(at, size, Fit::loose); });
}

void* take_over(void* block, size_t present, size_t alignment, size_t size) {
  return reallocate_by(block, present, size, [] { return nullptr; }, [=] { return allocate_aligned(alignment, size); });
}

// Another allocator's block comes over to us. A region's stays there.
static void* take_over_aligned(void* block, size_t alignment, size_t size) {
  if (Region* region = regions::find(block)) return reallocate_in_region(region, block, alignment, size);
  return take_over(block, g_foreign.usable_size(block), alignment, size);
}

void* reallocate_aligned(void* block, size_t alignment, size_t size) {
  if (block == nullptr) return allocate_aligned(alignment, size);
  if (alignment <= kBlockAlign) return reallocate(block, size);
  if constexpr (kHardened)
    if (hardened::holds(block)) return reallocate_aligned_hardened(block, alignment, size);
  if (!in_realm(block)) return take_over_aligned(block, alignment, size);
  BlockAt at = known_block(block, "rh_aligned_realloc");
  auto resize = [=]() -> void* {
    if (address_of(block) % alignment != 0) return nullptr;
    if (void* resized = resize_in_place(at, size)) return resized;
    return alignment <= kUnitSize ? resize_by_moving(at, size) : nullptr;
  };
  return reallocate_by(block, at.usable_size(), size, resize, [=] { return allocate_beside(at, alignment, size); });
}

size_t expand(void* block, size_t size) {
  if (block == nullptr || size > kMaxRequest) return 0;
  if constexpr (kHardened)
    if (hardened::holds(block)) return expand_hardened(block, size);
  if (!in_realm(block)) {
    if (Region* region = regions::find(block)) return expand_in_region(region, block, size);
    const size_t usable = g_foreign.usable_size(block);
    return size <= usable ? usable : 0;
  }
  BlockAt at = known_block(block, "rh_expand");
  const bool fits = size <= at.requested_size() || resize_in_place(at, size, Fit::loose) != nullptr;
  return fits ? at.usable_size() : 0;
}

size_t trim() { return idle::trim() + regions::trim(); }

void* heap_allocate(Heap* heap, size_t alignment, size_t size, bool zeroed) {
  if (alignment > kMaxAlignment || size > kMaxRequest) return out_of_memory();
  if constexpr (kHardened) return checked(allocate_hardened(alignment, size, Maker::c, heap, zeroed));
  return checked(allocate_in(heap, alignment, size, zeroed));
}

[[noreturn]] RH_COLD static void fail_other_heap(const void* block) {
  Text message;
  message << "rh_heap_realloc of a block of another heap: ";
  fatal(message.hex(address_of(block)));
}

void* heap_reallocate(Heap* heap, void* block, size_t size) {
  if (block == nullptr) return heap_allocate(heap, kBlockAlign, size, false);
  bool ours = in_realm(block);
  if (RH_UNLIKELY(!ours || shared::heap_of(known_block(block, "rh_heap_realloc").span) != heap)) fail_other_heap(block);
  // What moves stays in the heap, so that who resizes has to be one who may allocate there.
  if (size != 0 && !may_take_from(heap)) return out_of_memory();
  return reallocate(block, size);
}

void* heap_reallocate(Region* region, void* block, size_t size) {
  if (block == nullptr) return region_allocate(region, kBlockAlign, size, false);
  if (regions::find(block) != region) fail_other_heap(block);
  return reallocate_in_region(region, block, kBlockAlign, size);
}

// What follows is made one by one, and so are those where there is more to it.
template <typename Allocate> static size_t allocate_each(void** blocks, size_t made, size_t count, Allocate allocate) {
  for (; made < count; ++made) {
    blocks[made] = allocate();
    if (blocks[made] == nullptr) break;
  }
  return made;
}

size_t allocate_many(size_t size, void** blocks, size_t count) {
  return allocate_each(blocks, 0, count, [=] { return allocate(size); });
}

size_t heap_allocate_many(Heap* heap, size_t size, void** blocks, size_t count) {
  size_t made = 0;
  if constexpr (!kHardened) made = allocate_many_in(heap, size, blocks, count);
  return allocate_each(blocks, made, count, [=] { return heap_allocate(heap, kBlockAlign, size, false); });
}

size_t heap_allocate_many(Region* region, size_t size, void** blocks, size_t count) {
  return allocate_each(blocks, 0, count, [=] { return region_allocate(region, kBlockAlign, size, false); });
}

Heap* heap_of(const void* pointer) {
  if constexpr (kHardened) return hardened::heap_of(pointer);
  BlockAt at = find_block(pointer);
  if (at.span == nullptr || (at.is_guarded() && !guards::is_live(at.span))) return nullptr;
  return shared::heap_of(at.span);
}

}  // namespace rh::rules
