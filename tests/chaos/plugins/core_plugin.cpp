// A plugin with its own allocator linked in: libreheap-core.
#include <cstddef>
#include <cstring>

#include "reheap/reheap.h"

extern "C" void chaos_use_and_free() {
  constexpr std::size_t kBlock = 1 << 20;
  void* blocks[100];
  for (void*& block : blocks) {
    block = rh_malloc(kBlock);
    if (block) std::memset(block, 1, kBlock);
  }
  for (void* block : blocks) rh_free(block);
}
