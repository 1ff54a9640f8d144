// Tags of blocks in slabs, where memory has tags (platform/memory_tags.h). A block in somebody's hands has one of the
// fifteen that are not 0, by lot, neither its neighbours' nor the one it had before; so has the pointer to it. Memory
// that is free, and what of a block was not asked for, has tag 0. So a pointer to a block that was freed can no longer
// be used, nor one to reach beyond the block, but for the last bytes of its last sixteen, where the tail is.
//
// The heap below knows nothing of this: what it touches is free. Blocks of first-class heaps have none, for they end
// with their heap, unseen by this layer; nor have large blocks, whose tags would take long to write.
#pragma once

#include "arena/sizes.h"
#include "heap/heap.h"
#include "platform/memory_tags.h"
#include "slabs/slab.h"

namespace rh::hardened::memory_tags {

// The address that the heap knows.
RH_INLINE void* plain(const void* pointer) {
  return platform::has_tags() ? platform::with_tag(pointer, 0) : const_cast<void*>(pointer);
}

// Of a block that is to be handed out or resized: the pointer to it, with the tag, which what was asked for gets.
RH_INLINE void* cover(void* block, unsigned tag, size_t size, size_t room) {
  size_t covered = align_up(size == 0 ? 1 : size, platform::kTagGrain);
  platform::store_tag(block, covered, tag);
  if (covered != room) platform::store_tag(static_cast<char*>(block) + covered, room - covered, 0);
  return platform::with_tag(block, tag);
}

// Which a block must not get; it is noted as free still.
inline uint64_t excluded(const Span* slab, const void* block) {
  const size_class::Properties& own = slab::properties(slab);
  const size_t offset = address_of(block) - g_realm.address(slab);
  uint64_t tags = 1 | uint64_t{1} << g_realm.sizes().last_tag(block, slab::is_smallest(slab));
  auto exclude = [&](uintptr_t at) { tags |= uint64_t{1} << platform::stored_tag(reinterpret_cast<const void*>(at)); };
  if (offset >= own.size) exclude(address_of(block) - own.size);
  if (offset + 2 * size_t{own.size} <= slab::capacity(slab) * size_t{own.size}) exclude(address_of(block) + own.size);
  return tags;
}

RH_INLINE bool has_tag(const Span* slab) {
  if (!platform::has_tags()) return false;
  const Heap* owner = owner_of(slab);
  return owner != nullptr && !is_first_class(owner);
}

// Whether a pointer has the tag of the block that begins there.
RH_INLINE bool fits(const void* pointer, const void* block) {
  return !platform::has_tags() || platform::tag_of(pointer) == platform::stored_tag(block);
}

// Takes a block's tag away; gives it.
RH_INLINE unsigned take(void* block, size_t room) {
  if (!platform::has_tags()) return Sizes::kUnknownTag;
  unsigned tag = platform::stored_tag(block);
  if (tag != 0) platform::store_tag(block, room, 0);
  return tag;
}

}  // namespace rh::hardened::memory_tags
