#include "hardened/small.h"

#include "hardened/misuse.h"

namespace rh::hardened {

constinit std::atomic<unsigned> g_quarantine{kQuarantine};

void let_go(void* block) {
  if (block == nullptr) return;
  size_t room = Small(block).room();
  if (RH_UNLIKELY(!starts_clear(block, room))) return tell_written(block, room);
  if (!rh::deallocate_fast(block) && !rh::deallocate_otherwise(block)) rh::deallocate_slow(block);
}

}  // namespace rh::hardened
