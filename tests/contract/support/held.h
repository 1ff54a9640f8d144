// Blocks whose contents identify them.
#pragma once

#include <atomic>
#include <cstdlib>

#include "support/pattern.h"
#include "support/scenario.h"

namespace contract {

// While limits are low or the system refuses calls, a request may fail; otherwise never.
inline std::atomic<bool> memory_is_scarce{false};

inline void* need_memory(void* made, std::size_t size) {
  NEED(made || memory_is_scarce, "%zu bytes", size);
  return made;
}

// A block, filled with a pattern of its address, its size and a seed.
struct Held {
  void* block = nullptr;
  std::size_t size = 0;
  std::uint64_t seed = 0;

  Held() = default;
  Held(std::size_t wanted, std::uint64_t with) { take(wanted, with); }

  explicit operator bool() const { return block != nullptr; }

  std::uint64_t key() const { return mix(seed ^ reinterpret_cast<std::uintptr_t>(block)) + size; }

  void hold(void* made, std::size_t wanted, std::uint64_t with) {
    block = made;
    size = wanted;
    seed = with;
    fill(block, size, key());
  }

  void take(std::size_t wanted, std::uint64_t with) {
    if (void* made = need_memory(malloc(wanted), wanted)) hold(made, wanted, with);
  }

  void check() const { NEED(intact(block, size, key()), "block %p of %zu", block, size); }

  void drop() {
    if (!block) return;
    check();
    free(block);
    *this = {};
  }

  // False, with nothing changed, when there is no memory for it.
  bool resize(std::size_t wanted) {
    check();
    const std::size_t kept = wanted < size ? wanted : size;
    const Held before = *this;
    void* moved = realloc(block, wanted);
    if (!moved) {
      check();
      return false;
    }
    block = moved;
    size = wanted;
    // The preserved content still has the pattern of the old address.
    NEED(intact(block, kept, before.key()), "realloc of %zu to %zu lost content", before.size, wanted);
    fill(block, size, key());
    return true;
  }
};

}  // namespace contract
