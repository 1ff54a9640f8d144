// What every operator new does, whatever name it is called by. `of`: the partition that the memory is to be of, if the
// name says one; hardened builds alone have more than one.
#pragma once

#include <new>

#include "base/bits.h"
#include "entry/bad_alloc.h"
#include "entry/rules.h"

// What the names of functions have for size_t, but for those of Microsoft's compiler.
#if defined(__LP64__)
#define RH_SIZE_LETTER "m"
#elif __SIZEOF_POINTER__ == 8
#define RH_SIZE_LETTER "y"
#else
#define RH_SIZE_LETTER "j"
#endif

namespace rh::operators {

using rules::Maker;
inline constexpr Maker kSingle = Maker::single, kArray = Maker::array;

inline size_t number(std::align_val_t alignment) { return static_cast<size_t>(alignment); }

// Asks the new-handler for memory until there is some, or it gives up in its own way.
template <typename Allocate> [[gnu::noinline]] void* allocate_or_throw(size_t size, Allocate allocate) {
  start();
  for (;;) {
    if (void* block = allocate()) return block;
    if (!call_new_handler(size)) throw_bad_alloc();
  }
}

template <typename Allocate> [[gnu::noinline]] void* allocate_or_null(size_t size, Allocate allocate) noexcept {
  start();
  for (;;) {
    if (void* block = allocate()) return block;
    if (!call_new_handler_quietly(size)) return nullptr;
  }
}

// As libstdc++: no memory has an alignment that is no power of two, and the new-handler is not asked for it.
inline bool is_possible(std::align_val_t alignment) { return is_power_of_two(number(alignment)); }

// Without more ado, and in all cases.
template <Maker maker> RH_INLINE void* make_fast(size_t size) {
  return kHardened ? hardened::allocate_fast(size, maker) : allocate_fast(size);
}
template <Maker maker> void* make_slow(size_t size) {
  return kHardened ? rules::allocate_otherwise(size, maker) : rh::allocate_slow(size);
}

// In hardened builds alone.
template <Maker maker> void* make_fast(size_t size, Partition of) {
  return rules::allocate_typed(of, kBlockAlign, size, maker);
}
template <Maker maker> void* make_slow(size_t size, Partition of) { return make_fast<maker>(size, of); }

template <Maker maker> void* make_aligned(size_t size, std::align_val_t alignment, Partition partition = kUntyped) {
  if (number(alignment) > kMaxAlignment) return nullptr;
  if constexpr (kHardened) return rules::allocate_typed(partition, number(alignment), size, maker);
  return rh::allocate_aligned(number(alignment), size);
}

// In hardened builds alone: what the shortest way does not serve.
template <Maker maker> RH_NOINLINE void* make_otherwise(size_t size) {
  if (void* block = hardened::allocate_medium(size, maker)) return block;
  return allocate_or_throw(size, [=] { return make_slow<maker>(size); });
}

template <Maker maker, typename... Of> RH_INLINE void* make(size_t size, Of... of) {
  if (void* block = make_fast<maker>(size, of...)) return block;
  if constexpr (kHardened && sizeof...(of) == 0) return make_otherwise<maker>(size);
  return allocate_or_throw(size, [=] { return make_slow<maker>(size, of...); });
}

template <Maker maker, typename... Of> RH_INLINE void* make_quietly(size_t size, Of... of) {
  if (void* block = make_fast<maker>(size, of...)) return block;
  return allocate_or_null(size, [=] { return make_slow<maker>(size, of...); });
}

// In hardened builds alone: by functions of their own, or what they need of registers is saved before the alignment is
// looked at.
template <Maker maker> RH_NOINLINE void* make_apart(size_t size) { return make<maker>(size); }
template <Maker maker> RH_NOINLINE void* make_aligned_otherwise(size_t size, std::align_val_t alignment) {
  if (!is_possible(alignment)) throw_bad_alloc();
  return allocate_or_throw(size, [=] { return make_aligned<maker>(size, alignment); });
}

// Alignments that every block has are asked for too, a lot: by LLVM's containers for one. 0 is not told apart at first:
// there is nothing for it either way.
template <Maker maker, typename... Of>
RH_INLINE void* make_aligned_fast(size_t size, std::align_val_t alignment, Of... of) {
  size_t bits = number(alignment);
  if (RH_UNLIKELY((bits & (bits - 1)) != 0)) return nullptr;
  if constexpr (kHardened) return bits - 1 < kBlockAlign ? make_fast<maker>(size, of...) : nullptr;
  return allocate_aligned_fast(bits, size);
}

template <Maker maker, typename... Of>
RH_INLINE void* make(size_t size, std::align_val_t alignment, [[maybe_unused]] Of... of) {
  if constexpr (kHardened && sizeof...(of) == 0) {
    const bool every_block_has_it = number(alignment) - 1 < kBlockAlign && is_possible(alignment);
    return RH_LIKELY(every_block_has_it) ? make_apart<maker>(size) : make_aligned_otherwise<maker>(size, alignment);
  }
  if (void* block = make_aligned_fast<maker>(size, alignment, of...)) return block;
  if (!is_possible(alignment)) throw_bad_alloc();
  return allocate_or_throw(size, [=] { return make_aligned<maker>(size, alignment, of...); });
}

template <Maker maker, typename... Of>
RH_INLINE void* make_quietly(size_t size, std::align_val_t alignment, Of... of) noexcept {
  if (void* block = make_aligned_fast<maker>(size, alignment, of...)) return block;
  if (!is_possible(alignment)) return nullptr;
  return allocate_or_null(size, [=] { return make_aligned<maker>(size, alignment, of...); });
}

}  // namespace rh::operators
