// The sampled blocks that are live, by address.
#pragma once

#include "profile/stacks.h"

namespace rh::profile {

struct LiveBlock {
  uintptr_t address;  // 0: none
  uint32_t stack;
  uint64_t made_ms;
  uint64_t size;
  Amount stands_for;
};

// Zeroed, it is empty.
class LiveBlocks {
 public:
  // To be filled in by the caller; null when there is no memory for it. It is not there yet.
  LiveBlock* add(uintptr_t address);

  LiveBlock* find(uintptr_t address);
  void remove(LiveBlock* block);

  size_t count() const { return used_; }
  void clear();

 private:
  bool make_room();
  LiveBlock& place_of(uintptr_t address);
  size_t home(uintptr_t address) const;

  Array<LiveBlock> places_;  // at most half full; a power of two
  size_t used_ = 0;
};

}  // namespace rh::profile
