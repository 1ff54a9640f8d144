// Shared by the tests that exhaust address space: blocks of several kinds, freed but for a few.
#pragma once

#include <cstdlib>

#include "support/process.h"
#include "support/scenario.h"

namespace contract {

class Blocks {
 public:
  // One of each kind in turn, `bytes` in all.
  void take(std::size_t bytes) {
    const std::size_t kinds[] = {48, 64 * KiB, 4 * MiB, 100 * MiB};
    const std::size_t small = bytes / 16;
    for (const std::size_t size : kinds) {
      const std::size_t share = size == 48 ? small : (bytes - small) / 3;
      for (std::size_t taken = 0; taken < share; taken += size) NEED(keep(malloc(size)), "after %zu blocks", count_);
    }
  }

  // False, and nothing is kept, when there is none.
  bool keep(void* block) {
    if (!block) return false;
    *static_cast<void**>(block) = first_;
    first_ = block;
    ++count_;
    return true;
  }

  // Frees all but `survivors` of them, which are scattered and small.
  void free_all_but(std::size_t survivors) {
    const std::size_t each = survivors == 0 ? count_ + 1 : count_ / (survivors + 1);
    for (std::size_t at = 1; first_; ++at) {
      void* block = first_;
      first_ = *static_cast<void**>(block);
      if (at % each != 0) free(block);
    }
    count_ = 0;
  }

 private:
  void* first_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace contract
