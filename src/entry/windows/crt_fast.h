// The functions of crt.h that are called most, for the names they stand behind: inlined, the fast path is all there is.
// Those for alignments are among them because C++ allocates by them whenever it names an alignment, of 8 as of 64: all
// containers of LLVM do.
#pragma once

#include "base/bits.h"
#include "entry/windows/crt_host.h"
#include "heap/heap.h"

namespace rh::crt {

// When the fast path has no block, or the block is not the calling thread's own.
RH_COLD void* malloc_cold(const Host& host, size_t size);
RH_COLD void free_cold(const Host& host, void* block);
void* aligned_malloc_cold(const Host& host, size_t size, size_t alignment);
void aligned_free_cold(const Host& host, void* block);

RH_INLINE void* malloc_inlined(const Host& host, size_t size) {
  if constexpr (kHardened) return malloc_cold(host, size);
  void* block = allocate_fast(size);
  return RH_LIKELY(block != nullptr) ? block : malloc_cold(host, size);
}

// A block of the calling thread's own that is alive goes, and is noted as free: a second time it is refused.
RH_INLINE void free_noted(Span* slab, void* block) {
  slab::note_free(slab, block);
  if (free_own(thread_heap(), slab, static_cast<Block*>(block))) free_reached_mark(slab);
}

RH_INLINE void free_inlined(const Host& host, void* block) {
  Span* slab = kHardened ? nullptr : own_span(block);
  bool live = slab != nullptr && can_free(slab, block) && !slab::is_noted_free(slab, block);
  if (RH_LIKELY(live)) return free_noted(slab, block);
  if (block != nullptr) free_cold(host, block);
}

RH_INLINE void* aligned_malloc_inlined(const Host& host, size_t size, size_t alignment) {
  if (RH_LIKELY(alignment <= kBlockAlign && is_power_of_two(alignment))) return malloc_inlined(host, size);
  return aligned_malloc_cold(host, size, alignment);
}

RH_INLINE void aligned_free_inlined(const Host& host, void* block) {
  Span* slab = kHardened ? nullptr : own_live_slab(block);
  if (slab != nullptr) return free_noted(slab, block);
  if (block != nullptr) aligned_free_cold(host, block);
}

}  // namespace rh::crt
