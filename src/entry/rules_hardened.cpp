// The rules as hardened builds keep them.
#include "entry/rules.h"
#include "hardened/small.h"

namespace rh::rules {

void* allocate_hardened(size_t size, Maker maker, bool zeroed) {
  void* block = hardened::allocate_fast(size, maker);
  return RH_LIKELY(block != nullptr) ? block : allocate_hardened(kBlockAlign, size, maker, nullptr, zeroed);
}

// When memory is short what this thread keeps from use is let go, and one more attempt made.
void* allocate_hardened(size_t alignment, size_t size, Maker maker, Heap* heap, bool zeroed) {
  start();
  if (alignment < kBlockAlign) alignment = kBlockAlign;
  if (void* block = hardened::allocate(heap, alignment, size, maker, zeroed)) return block;
  hardened::flush();
  return hardened::allocate(heap, alignment, size, maker, zeroed);
}

RH_NOINLINE static void free_otherwise(void* block, Maker maker, size_t size) {
  if (block != nullptr && hardened::free(block, maker, size) == Freed::foreign) g_foreign.free(block);
}

void free_hardened(void* block, Maker maker, size_t size) {
  if (!hardened::free_fast(block, maker, size)) free_otherwise(block, maker, size);
}

void* reallocate_hardened(void* block, size_t size) {
  size_t present = hardened::size_of(block, "realloc");
  // One without bytes cannot grow.
  auto resize = [=] { return present != 0 ? hardened::resize(block, size) : nullptr; };
  auto allocate = [=] { return checked(allocate_hardened(kBlockAlign, size, Maker::c, hardened::heap_beside(block))); };
  return reallocate_by(block, present, size, resize, allocate);
}

}  // namespace rh::rules
