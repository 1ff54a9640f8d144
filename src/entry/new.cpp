// Every operator new and delete.
#include <new>

#include "base/bits.h"
#include "entry/bad_alloc.h"
#include "entry/rules.h"

#if defined(__ELF__)
#define RH_EXPORT [[gnu::visibility("default")]]
#else
#define RH_EXPORT  // by the linker, if at all
#endif

using namespace rh;

namespace {

using rules::Maker;
constexpr Maker kSingle = Maker::single, kArray = Maker::array;

size_t number(std::align_val_t alignment) { return static_cast<size_t>(alignment); }

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
bool is_possible(std::align_val_t alignment) { return is_power_of_two(number(alignment)); }

// Without more ado, and in all cases.
template <Maker maker> RH_INLINE void* make_fast(size_t size) {
  if constexpr (kHardened) return rules::allocate_hardened(size, maker);
  return allocate_fast(size);
}

template <Maker maker> void* make_slow(size_t size) {
  if constexpr (kHardened) return rules::allocate_hardened(size, maker);
  return rh::allocate_slow(size);
}

template <Maker maker> void* make_aligned(size_t size, std::align_val_t alignment) {
  if (number(alignment) > kMaxAlignment) return nullptr;
  if constexpr (kHardened) return rules::allocate_hardened(number(alignment), size, maker);
  return rh::allocate_aligned(number(alignment), size);
}

template <Maker maker> RH_INLINE void* make(size_t size) {
  if (void* block = make_fast<maker>(size)) return block;
  return allocate_or_throw(size, [size] { return make_slow<maker>(size); });
}

template <Maker maker> RH_INLINE void* make_quietly(size_t size) {
  if (void* block = make_fast<maker>(size)) return block;
  return allocate_or_null(size, [size] { return make_slow<maker>(size); });
}

// Alignments that every block has are asked for too, a lot: by LLVM's containers for one. 0 is not told apart at first:
// there is nothing for it either way.
template <Maker maker> RH_INLINE void* make_aligned_fast(size_t size, std::align_val_t alignment) {
  size_t bits = number(alignment);
  if (RH_UNLIKELY((bits & (bits - 1)) != 0)) return nullptr;
  if constexpr (kHardened) return bits - 1 < kBlockAlign ? make_fast<maker>(size) : nullptr;
  return allocate_aligned_fast(bits, size);
}

template <Maker maker> RH_INLINE void* make(size_t size, std::align_val_t alignment) {
  if (void* block = make_aligned_fast<maker>(size, alignment)) return block;
  if (!is_possible(alignment)) throw_bad_alloc();
  return allocate_or_throw(size, [=] { return make_aligned<maker>(size, alignment); });
}

template <Maker maker> RH_INLINE void* make_quietly(size_t size, std::align_val_t alignment) noexcept {
  if (void* block = make_aligned_fast<maker>(size, alignment)) return block;
  if (!is_possible(alignment)) return nullptr;
  return allocate_or_null(size, [=] { return make_aligned<maker>(size, alignment); });
}

}  // namespace

RH_EXPORT void* operator new(size_t size) { return make<kSingle>(size); }
RH_EXPORT void* operator new[](size_t size) { return make<kArray>(size); }
RH_EXPORT void* operator new(size_t size, const std::nothrow_t&) noexcept { return make_quietly<kSingle>(size); }
RH_EXPORT void* operator new[](size_t size, const std::nothrow_t&) noexcept { return make_quietly<kArray>(size); }
RH_EXPORT void* operator new(size_t size, std::align_val_t alignment) { return make<kSingle>(size, alignment); }
RH_EXPORT void* operator new[](size_t size, std::align_val_t alignment) { return make<kArray>(size, alignment); }
RH_EXPORT void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return make_quietly<kSingle>(size, alignment);
}
RH_EXPORT void* operator new[](size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return make_quietly<kArray>(size, alignment);
}

RH_EXPORT void operator delete(void* block) noexcept { rules::free(block, kSingle); }
RH_EXPORT void operator delete[](void* block) noexcept { rules::free(block, kArray); }
RH_EXPORT void operator delete(void* block, size_t size) noexcept { rules::free_sized(block, size, kSingle); }
RH_EXPORT void operator delete[](void* block, size_t size) noexcept { rules::free_sized(block, size, kArray); }
RH_EXPORT void operator delete(void* block, const std::nothrow_t&) noexcept { rules::free(block, kSingle); }
RH_EXPORT void operator delete[](void* block, const std::nothrow_t&) noexcept { rules::free(block, kArray); }
RH_EXPORT void operator delete(void* block, std::align_val_t) noexcept { rules::free(block, kSingle); }
RH_EXPORT void operator delete[](void* block, std::align_val_t) noexcept { rules::free(block, kArray); }
RH_EXPORT void operator delete(void* block, size_t size, std::align_val_t) noexcept {
  rules::free_sized(block, size, kSingle);
}
RH_EXPORT void operator delete[](void* block, size_t size, std::align_val_t) noexcept {
  rules::free_sized(block, size, kArray);
}
RH_EXPORT void operator delete(void* block, std::align_val_t, const std::nothrow_t&) noexcept {
  rules::free(block, kSingle);
}
RH_EXPORT void operator delete[](void* block, std::align_val_t, const std::nothrow_t&) noexcept {
  rules::free(block, kArray);
}
