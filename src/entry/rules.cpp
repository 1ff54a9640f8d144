#include "entry/rules.h"

#include "heap/idle.h"
#include "platform/report.h"

namespace rh::rules {

void* allocate_cold(size_t size) {
  if (void* block = allocate_medium_fast(size)) return block;
  start();
  return checked(rh::allocate_slow(size));
}

RH_NOINLINE static void free_elsewhere(void* block) {
  if (rh::deallocate_slow(block) == Freed::foreign) g_foreign.free(block);
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

size_t usable_size(const void* block) {
  if constexpr (kHardened)
    if (hardened::holds(block)) return hardened::size_of(block, "malloc_usable_size");
  size_t size = 0;
  if (block == nullptr || usable_size_fast(block, &size)) return size;
  if (!in_realm(block)) return g_foreign.usable_size(const_cast<void*>(block));
  return rh::usable_size(block, "malloc_usable_size");
}

// A block of a first-class heap stays in it.
static void* allocate_beside(const BlockAt& at, size_t size) {
  Heap* heap = shared::heap_beside(at.span);
  return heap == nullptr ? allocate(size) : heap_allocate(heap, kBlockAlign, size, false);
}

void* reallocate(void* block, size_t size) {
  if (block == nullptr) return allocate(size);
  if constexpr (kHardened)
    if (hardened::holds(block)) return reallocate_hardened(block, size);
  if (!in_realm(block)) return g_foreign.reallocate(block, size);
  BlockAt at = known_block(block, "realloc");
  auto resize = [=] {
    void* resized = resize_in_place(at, size);
    return resized != nullptr ? resized : resize_by_moving(at, size);
  };
  return reallocate_by(block, at.usable_size(), size, resize, [=] { return allocate_beside(at, size); });
}

size_t trim() {
  if constexpr (kHardened) hardened::flush();
  return idle::trim();
}

void* heap_allocate(Heap* heap, size_t alignment, size_t size, bool zeroed) {
  if (alignment > kMaxAlignment || size > kMaxRequest) return out_of_memory();
  if constexpr (kHardened) return checked(allocate_hardened(alignment, size, Maker::c, heap, zeroed));
  return checked(allocate_in(heap, alignment, size, zeroed));
}

void* heap_reallocate(Heap* heap, void* block, size_t size) {
  if (block == nullptr) return heap_allocate(heap, kBlockAlign, size, false);
  bool ours = in_realm(block);
  if (RH_UNLIKELY(!ours || shared::heap_of(known_block(block, "rh_heap_realloc").span) != heap)) {
    Text message;
    message << "rh_heap_realloc of a block of another heap: ";
    fatal(message.hex(address_of(block)));
  }
  return reallocate(block, size);
}

}  // namespace rh::rules
