// What Windows' names do with this heap's blocks, in either build: the C runtimes' and the system heap's. Of each block
// the size asked for is known. In a hardened build misuse ends the process, or is told of.
#pragma once

#include "entry/rules.h"
#include "hardened/small.h"

namespace rh::blocks {

// From a first-class heap, or the calling thread's when that is null; null when there is no memory. `alignment` is a
// power of two up to kMaxAlignment.
inline void* allocate_in(Heap* heap, size_t alignment, size_t size, bool zeroed) {
  if constexpr (kHardened) {
    if (size > kMaxRequest) return nullptr;
    if (heap == nullptr && alignment <= kBlockAlign) return rules::allocate_hardened(size, rules::Maker::c, zeroed);
    return rules::allocate_hardened(alignment, size, rules::Maker::c, heap, zeroed);
  }
  if (heap != nullptr) return rh::allocate_in(heap, alignment, size, zeroed);
  if (alignment > kBlockAlign) return rh::allocate_aligned(alignment, size);
  return zeroed ? rh::allocate_zeroed(size) : rh::allocate(size);
}

// From the memory of a partition, which only hardened builds have more than one of.
inline void* allocate_of(Partition of, size_t size, bool zeroed) {
  if (!kHardened || of == kUntyped) return allocate_in(nullptr, kBlockAlign, size, zeroed);
  return rules::allocate_typed(of, kBlockAlign, size, rules::Maker::c, zeroed);
}

inline void* allocate(size_t size) {
  if constexpr (kHardened) return allocate_in(nullptr, kBlockAlign, size, false);
  return allocate_slow(size);
}

// Whether it is the start of a live block, as far as can be told.
inline bool is_live(const void* pointer) {
  if constexpr (kHardened) return hardened::is_live(pointer);
  return rh::is_live(pointer);
}

// Of a live block; ends the process for what can be seen to be none.
inline size_t size_of(const void* block, const char* function) {
  if constexpr (kHardened) return hardened::size_of(block, function);
  return requested_size(block, function);
}

// The start of the block that an address of ours lies in.
inline void* start_of(const void* pointer, const char* function) {
  if constexpr (kHardened) return hardened::start_of(pointer, function);
  return block_start(pointer, function);
}

// How many bytes of its block there are from an address of ours on.
inline size_t bytes_from(const void* pointer, const char* function) {
  const void* start = start_of(pointer, function);
  return size_of(start, function) - (address_of(pointer) - address_of(start));
}

// Frees a live block of ours. False, and nothing done, when it is none as far as can be told.
inline bool free(void* block, rules::Maker maker = rules::Maker::c) {
  if constexpr (kHardened)
    return hardened::free_fast(block, maker) == hardened::Led::to_its_end ||
           hardened::free(block, maker) == Freed::done;
  return deallocate_live(block);
}

// Of a live block of ours, which stays where it is; null when it cannot.
inline void* resize_in_place(void* block, size_t size, Fit fit) {
  if constexpr (kHardened) {
    auto how = fit == Fit::loose ? hardened::Resize::stays_loose : hardened::Resize::stays;
    // One without bytes can be no other.
    if (hardened::is_empty_block(block)) return size == 0 ? block : nullptr;
    return hardened::resize(block, size, how);
  }
  return rh::resize_in_place(find_block(block), size, fit);
}

}  // namespace rh::blocks
