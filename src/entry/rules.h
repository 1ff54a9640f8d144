// The C rules, once: errno, zero sizes, overflow, alignments; and where a pointer goes that is not ours. Every name a
// program may call is one of these.
#pragma once

#include <errno.h>

#include "entry/foreign.h"
#include "entry/start.h"
#include "hardened/hardened.h"
#include "hardened/small.h"
#include "heap/heap.h"
#include "heap/regions.h"
#include "heap/shared.h"

namespace rh::rules {

inline void* out_of_memory() {
  g_foreign.set_errno(ENOMEM);
  return nullptr;
}

inline void* checked(void* block) { return RH_LIKELY(block != nullptr) ? block : out_of_memory(); }

using hardened::Maker;

// In hardened builds (rules_hardened.cpp): a block by a function of `maker`, null when there is no memory, and errno
// left alone; its end, where `size` is what the caller says it has; and realloc of a pointer of ours.
void* allocate_hardened(size_t size, Maker maker, bool zeroed = false);
void* allocate_otherwise(size_t size, Maker maker, bool zeroed = false);  // where the shortest way does not lead
void* allocate_hardened(size_t alignment, size_t size, Maker maker, Heap* heap = nullptr, bool zeroed = false);
void free_hardened(void* block, Maker maker, size_t size = hardened::kUnknown);
void free_seldom_one(void* block, Maker maker, size_t size);  // where the shortest way says so
void free_otherwise(void* block, Maker maker, size_t size);   // where it does not lead
void* reallocate_hardened(void* block, size_t size);
void* reallocate_aligned_hardened(void* block, size_t alignment, size_t size);
size_t expand_hardened(void* block, size_t size);

// The same of what is to lie in a partition's memory, which may be kUntyped. A block of another is moved there, but for
// one of a first-class heap.
void* allocate_typed(Partition partition, size_t alignment, size_t size, Maker maker, bool zeroed = false);
void* reallocate_typed(Partition partition, void* block, size_t size);

// Where a copy of a live block of ours may be made: in memory of the same partition. Null when there is no memory.
void* allocate_beside(const void* block, size_t alignment, size_t size);

RH_NOINLINE void* allocate_cold(size_t size);

RH_INLINE void* allocate(size_t size) {
  void* block = kHardened ? hardened::allocate_fast(size, Maker::c) : allocate_fast(size);
  return RH_LIKELY(block != nullptr) ? block : allocate_cold(size);
}

inline bool product(size_t count, size_t size, size_t* bytes) { return !__builtin_mul_overflow(count, size, bytes); }

// Every alignment below is a power of two; one that is not is the caller's to refuse.
void* allocate_zeroed(size_t count, size_t size);
void* allocate_aligned(size_t alignment, size_t size);
void* reallocate(void* block, size_t size);
void* reallocate_elsewhere(void* block, size_t size);  // of a pointer that is not the realm's
void* reallocate_aligned(void* block, size_t alignment, size_t size);
size_t usable_size(const void* block);

// Lengthens a block where it lies. Gives its usable size then; 0 when it cannot. Errno stays as it is.
size_t expand(void* block, size_t size);

RH_NOINLINE void free_cold(void* block);

RH_INLINE void free(void* block, Maker maker = Maker::c, size_t size = hardened::kUnknown) {
  if constexpr (kHardened) {
    switch (hardened::free_fast(block, maker, size)) {
    case hardened::Led::to_its_end: return;
    case hardened::Led::seldom: return free_seldom_one(block, maker, size);
    case hardened::Led::not_here: return free_otherwise(block, maker, size);
    }
    return;
  }
  if (rh::deallocate_fast(block)) return;
  if (block != nullptr) free_cold(block);
}

RH_INLINE void free_sized(void* block, size_t size, Maker maker = Maker::c) { rules::free(block, maker, size); }

// The rules of realloc for a live block of which `present` bytes are its user's: `resize` changes it without a copy, or
// gives null, and `allocate` makes room for one.
template <typename Resize, typename Allocate>
RH_INLINE void* reallocate_by(void* block, size_t present, size_t size, Resize resize, Allocate allocate) {
  auto end = [block] { kHardened ? free_hardened(block, Maker::c) : rules::free(block); };
  if (size == 0) {
    end();
    return nullptr;
  }
  if (size > kMaxRequest) return out_of_memory();
  if (void* resized = resize()) return resized;
  void* copy = allocate();
  if (copy == nullptr) return nullptr;
  __builtin_memcpy(copy, block, size < present ? size : present);
  end();
  return copy;
}

// What realloc gives of a block of `present` bytes that was `resized`, or could not be for want of memory: what becomes
// no longer can stay where it is, and `shorten` notes its length.
template <typename Shorten> RH_INLINE void* or_shortened(void* resized, size_t present, size_t size, Shorten shorten) {
  if (resized != nullptr || size == 0) return resized;
  return checked(size <= present ? shorten() : nullptr);
}

// realloc of another allocator's block of which `present` bytes are its user's: the new one is ours.
void* take_over(void* block, size_t present, size_t alignment, size_t size);

// Returns at once what can be returned. Gives the bytes.
size_t trim();

// First-class heaps.
void* heap_allocate(Heap* heap, size_t alignment, size_t size, bool zeroed);
void* heap_reallocate(Heap* heap, void* block, size_t size);
void* heap_reallocate(Region* region, void* block, size_t size);

// Up to `count` blocks, as malloc makes them or from a first-class heap. Gives how many.
size_t allocate_many(size_t size, void** blocks, size_t count);
size_t heap_allocate_many(Heap* heap, size_t size, void** blocks, size_t count);
size_t heap_allocate_many(Region* region, size_t size, void** blocks, size_t count);

// That which the block is of that `pointer` lies in, anywhere; null for any other.
Heap* heap_of(const void* pointer);

// Blocks of regions (region_rules.cpp), which lie outside the realm: they are looked for where a pointer is not ours,
// before the next allocator is asked. What is no live block ends the process with a message; a hardened build may go
// on.

// Null, and errno set, when there is none.
void* region_allocate(Region* region, size_t alignment, size_t size, bool zeroed);

// Frees a block of a region; false, and nothing done, for an address in none. Hardened builds look at `size`.
bool free_in_region(void* block, size_t size = hardened::kUnknown);

// The usable size of the block; 0 where nothing is certain any more. Ends the process for no live block.
size_t size_in_region(Region* region, const void* block, const char* function);

// The same of what was asked for.
size_t asked_in_region(Region* region, const void* block, const char* function);

// As reallocate and expand.
void* reallocate_in_region(Region* region, void* block, size_t alignment, size_t size);
size_t expand_in_region(Region* region, void* block, size_t size);

// The block of `size` bytes, where it is or, unless it is to stay, elsewhere in the region. Null when there is none,
// and the old one stands. Errno stays as it is.
void* resize_in_region(Region* region, void* block, size_t size, bool stays);

}  // namespace rh::rules
