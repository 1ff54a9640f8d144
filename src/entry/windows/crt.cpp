#include "entry/windows/crt.h"

#include <errno.h>

#include "base/bits.h"
#include "entry/copies.h"
#include "entry/start.h"
#include "entry/windows/blocks.h"
#include "entry/windows/crt_fast.h"
#include "heap/heap.h"

namespace rh::crt {

namespace {

// As large as the runtimes try (_HEAP_MAXREQ); the new-handler is not asked about more.
constexpr size_t kMost = SIZE_MAX & ~size_t{0x1f};
constexpr size_t kFailed = SIZE_MAX;

void set_errno(const Host& host, int error) {
  if (host.errno_address != nullptr) *host.errno_address() = error;
}

void* out_of_memory(const Host& host) {
  set_errno(host, ENOMEM);
  return nullptr;
}

void* invalid(const Host& host) {
  set_errno(host, EINVAL);
  if (host.invalid_parameter != nullptr) host.invalid_parameter();
  return nullptr;
}

// Whether the program's new-handler, asked because the new mode says so, thinks it worth trying again.
bool try_again(const Host& host, size_t size) {
  if (host.query_new_mode == nullptr || host.callnewh == nullptr) return false;
  return host.query_new_mode() != 0 && host.callnewh(size) != 0;
}

template <typename Allocate> RH_NOINLINE void* insist(const Host& host, size_t size, Allocate allocate) {
  start();
  if (size > kMost) return out_of_memory(host);
  for (;;) {
    if (void* block = allocate()) return block;
    if (!try_again(host, size)) return out_of_memory(host);
  }
}

// The runtimes take a request of nothing for one of a byte, and say so when asked for the size. Not so the aligned
// ones; and not in hardened builds, where nobody may use that byte.
size_t at_least_one(size_t size) { return size == 0 && !kHardened ? 1 : size; }

bool is_ours(const void* block) { return in_realm(block); }

// From `block`, which may lie within one, to the end of what was asked for.
size_t own_bytes(const void* block) { return blocks::bytes_from(block, "realloc"); }

// Frees a block of ours, from its start: once.
RH_COLD void free_ours(void* block) {
  if (!blocks::free(block)) fail_invalid("free", block);
}

RH_COLD void free_elsewhere(void* block, void (*original)(void*)) {
  if (copies::free(block)) return;
  if (original != nullptr) return original(block);
  fail_invalid("free", block);
}

// ---- moving a block of whoever made it --------------------------------------------------------

// The new block of `size` bytes holds what `old` held of its `present` bytes; `old` is freed.
void* move(const Host& host, void* old, size_t present, void* fresh, size_t size) {
  if (fresh == nullptr) return nullptr;
  __builtin_memcpy(fresh, old, present < size ? present : size);
  aligned_free(host, old);
  return fresh;
}

// Of a hardened build's block, which moves to memory of that partition unless it is there. Not called elsewhere.
void* reallocate_of(const Host& host, Partition of, void* block, size_t size) {
  size_t before = 0;
  if constexpr (kHardened) {
    before = hardened::size_of(block, "realloc");
    bool stays = before != 0 && hardened::partition_of(block) == of;
    void* resized = stays ? hardened::resize(block, size) : nullptr;
    if (resized != nullptr) return resized;
  }
  if (size > before) return move(host, block, before, malloc_of(host, of, size), size);
  void* shorter = move(host, block, before, blocks::allocate_of(of, size, false), size);
  if constexpr (kHardened)
    if (shorter == nullptr) shorter = hardened::resize(block, size, hardened::Resize::stays_loose);
  return shorter != nullptr ? shorter : out_of_memory(host);
}

void* reallocate_own(const Host& host, void* block, size_t size) {
  if constexpr (kHardened) return reallocate_of(host, hardened::partition_of(block), block, size);
  BlockAt at = known_block(block, "realloc");
  size_t present = at_least_one(at.requested_size());
  if (void* copy = resize_by_copying(at, size)) return copy;
  if (void* resized = resize_in_place(at, size)) return resized;
  if (void* moved = resize_by_moving(at, size)) return moved;
  if (size > present) return move(host, block, present, malloc(host, size), size);
  void* shorter = move(host, block, present, blocks::allocate(size), size);
  if (shorter == nullptr) shorter = resize_in_place(at, size, Fit::loose);
  return shorter != nullptr ? shorter : out_of_memory(host);
}

// Of a region's block, which stays there.
void* resize_in_region(const Host& host, Region* region, void* block, size_t size, bool stays) {
  void* resized = rules::resize_in_region(region, block, size, stays);
  return resized != nullptr ? resized : out_of_memory(host);
}

void clear_from(void* block, size_t from, size_t to) {
  if (block != nullptr && to > from) __builtin_memset(static_cast<char*>(block) + from, 0, to - from);
}

bool product(const Host& host, size_t count, size_t size, size_t* bytes) {
  if (!__builtin_mul_overflow(count, size, bytes)) return true;
  out_of_memory(host);
  return false;
}

}  // namespace

// ---- malloc's family ----------------------------------------------------------------------------

void* malloc_cold(const Host& host, size_t size) {
  return insist(host, size, [size] { return blocks::allocate(size); });
}

void* malloc(const Host& host, size_t size) { return malloc_inlined(host, size); }

void* calloc(const Host& host, size_t count, size_t size) {
  size_t bytes = 0;
  if (!product(host, count, size, &bytes)) return nullptr;
  return insist(host, bytes, [bytes] { return blocks::allocate_in(nullptr, kBlockAlign, bytes, true); });
}

void* malloc_of(const Host& host, Partition of, size_t size) {
  if constexpr (!kHardened) return malloc(host, size);
  return insist(host, size, [=] { return blocks::allocate_of(of, size, false); });
}

void* calloc_of(const Host& host, Partition of, size_t count, size_t size) {
  if constexpr (!kHardened) return calloc(host, count, size);
  size_t bytes = 0;
  if (!product(host, count, size, &bytes)) return nullptr;
  return insist(host, bytes, [=] { return blocks::allocate_of(of, bytes, true); });
}

void* realloc_of(const Host& host, Partition of, void* block, size_t size) {
  const bool moves = kHardened && block != nullptr && size != 0 && size <= kMost && is_ours(block);
  if (moves) return reallocate_of(host, of, block, size);
  return block == nullptr ? malloc_of(host, of, size) : realloc(host, block, size);
}

void free_cold(const Host& host, void* block) {
  if (is_ours(block))
    free_ours(block);
  else
    free_elsewhere(block, host.free);
}

void free(const Host& host, void* block) { free_inlined(host, block); }

void* realloc(const Host& host, void* block, size_t size) {
  if (block == nullptr) return malloc(host, size);
  if (size == 0) {
    free(host, block);
    return nullptr;
  }
  if (size > kMost) return out_of_memory(host);
  if (is_ours(block)) return reallocate_own(host, block, size);
  if (Region* region = regions::find(block)) return resize_in_region(host, region, block, size, false);
  if (size_t present = 0; copies::bytes_from(block, &present))
    return move(host, block, present, malloc(host, size), size);
  return host.realloc != nullptr ? host.realloc(block, size) : invalid(host);
}

void* recalloc(const Host& host, void* block, size_t count, size_t size) {
  size_t bytes = 0;
  if (!product(host, count, size, &bytes)) return nullptr;
  if (block == nullptr) return calloc(host, count, size);
  if (!is_ours(block) && !copies::made(block) && host.recalloc != nullptr) return host.recalloc(block, count, size);
  size_t present = msize(host, block);
  void* resized = realloc(host, block, bytes);
  clear_from(resized, present, bytes);
  return resized;
}

void* expand(const Host& host, void* block, size_t size) {
  if (block == nullptr) return invalid(host);
  if (size > kMost) return out_of_memory(host);
  if (is_ours(block)) {
    void* resized = blocks::resize_in_place(block, size, Fit::loose);
    return resized != nullptr ? resized : out_of_memory(host);
  }
  if (Region* region = regions::find(block)) return resize_in_region(host, region, block, size, true);
  if (size_t present = 0; copies::bytes_from(block, &present)) return size <= present ? block : out_of_memory(host);
  return host.expand != nullptr ? host.expand(block, size) : invalid(host);
}

size_t msize(const Host& host, void* block) {
  size_t size = 0;
  if (!kHardened && requested_size_fast(block, &size)) return at_least_one(size);
  if (block == nullptr) {
    invalid(host);
    return kFailed;
  }
  if (is_ours(block)) return at_least_one(blocks::size_of(block, "_msize"));
  if (copies::bytes_from(block, &size)) return size;
  if (host.msize != nullptr) return host.msize(block);
  invalid(host);
  return kFailed;
}

// ---- the aligned family -------------------------------------------------------------------------
// A block lies so that `block + offset` is aligned: with an offset it is not the start of what was allocated.

void* aligned_malloc_cold(const Host& host, size_t size, size_t alignment) {
  return aligned_offset_malloc(host, size, alignment, 0);
}

void* aligned_malloc(const Host& host, size_t size, size_t alignment) {
  return aligned_malloc_inlined(host, size, alignment);
}

void* aligned_offset_malloc(const Host& host, size_t size, size_t alignment, size_t offset) {
  if (!is_power_of_two(alignment) || (offset != 0 && offset >= size)) return invalid(host);
  if (alignment > kMaxAlignment) return out_of_memory(host);
  size_t before = (0 - offset) & (alignment - 1);
  size_t bytes = 0;
  if (__builtin_add_overflow(size, before, &bytes)) return out_of_memory(host);
  void* start = insist(host, bytes, [=] { return blocks::allocate_in(nullptr, alignment, bytes, false); });
  return start == nullptr ? nullptr : static_cast<char*>(start) + before;
}

void aligned_free(const Host& host, void* block) { aligned_free_inlined(host, block); }

void aligned_free_cold(const Host& host, void* block) {
  if (is_ours(block))
    free_ours(blocks::start_of(block, "_aligned_free"));
  else
    free_elsewhere(block, host.aligned_free);
}

void* aligned_realloc(const Host& host, void* block, size_t size, size_t alignment) {
  return aligned_offset_realloc(host, block, size, alignment, 0);
}

void* aligned_offset_realloc(const Host& host, void* block, size_t size, size_t alignment, size_t offset) {
  if (block == nullptr) return aligned_offset_malloc(host, size, alignment, offset);
  if (size == 0) {
    aligned_free(host, block);
    return nullptr;
  }
  bool ours = is_ours(block);
  size_t present = 0;
  if (!ours && !copies::bytes_from(block, &present)) {
    if (offset == 0 && host.aligned_realloc != nullptr) return host.aligned_realloc(block, size, alignment);
    return host.aligned_offset_realloc != nullptr ? host.aligned_offset_realloc(block, size, alignment, offset)
                                                  : invalid(host);
  }
  if (!is_power_of_two(alignment) || (offset != 0 && offset >= size)) return invalid(host);
  Region* region = ours || offset != 0 || alignment > kMaxAlignment ? nullptr : regions::find(block);
  if (region != nullptr) {
    void* resized = rules::reallocate_in_region(region, block, alignment, size);
    return resized != nullptr ? resized : out_of_memory(host);
  }
  bool stays_aligned = ((address_of(block) + offset) & (alignment - 1)) == 0;
  if (ours && stays_aligned && block == blocks::start_of(block, "_aligned_realloc")) {
    if (void* resized = blocks::resize_in_place(block, size, Fit::close)) return resized;
  }
  if (ours) present = own_bytes(block);
  return move(host, block, present, aligned_offset_malloc(host, size, alignment, offset), size);
}

void* aligned_recalloc(const Host& host, void* block, size_t count, size_t size, size_t alignment) {
  return aligned_offset_recalloc(host, block, count, size, alignment, 0);
}

void* aligned_offset_recalloc(const Host& host, void* block, size_t count, size_t size, size_t alignment,
                              size_t offset) {
  size_t bytes = 0;
  if (!product(host, count, size, &bytes)) return nullptr;
  if (block != nullptr && !is_ours(block) && !copies::made(block) && host.aligned_offset_recalloc != nullptr)
    return host.aligned_offset_recalloc(block, count, size, alignment, offset);
  size_t present = block == nullptr ? 0 : aligned_msize(host, block, alignment, offset);
  void* resized = aligned_offset_realloc(host, block, bytes, alignment, offset);
  clear_from(resized, present, bytes);
  return resized;
}

size_t aligned_msize(const Host& host, void* block, size_t alignment, size_t offset) {
  if (block == nullptr || !is_power_of_two(alignment)) {
    invalid(host);
    return kFailed;
  }
  if (is_ours(block)) return own_bytes(block);
  if (size_t bytes = 0; copies::bytes_from(block, &bytes)) return bytes;
  if (host.aligned_msize != nullptr) return host.aligned_msize(block, alignment, offset);
  invalid(host);
  return kFailed;
}

}  // namespace rh::crt
