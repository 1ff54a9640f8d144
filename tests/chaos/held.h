// What every program here does with memory: blocks whose contents identify them.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"

namespace chaos {

using namespace contract;

// The status of a test that cannot be run here.
constexpr int kSkipped = 77;

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
    NEED(intact_part(before, kept), "realloc of %zu to %zu lost content", before.size, wanted);
    fill(block, size, key());
    return true;
  }

 private:
  bool intact_part(const Held& before, std::size_t length) const { return intact(block, length / 8 * 8, before.key()); }
};

// A megabyte and more of every small size, and one large block.
inline void use_heap(std::uint64_t seed) {
  Random random(seed);
  Held own[64];
  for (std::size_t at = 0; at < 64; ++at) own[at].take(std::size_t{1} << at % 18, seed + at);
  for (int round = 0; round < 200; ++round) {
    Held& held = own[random.below(64)];
    if (held) held.drop();
    held.take(random.size(40 * KiB), random.next());
  }
  for (Held& held : own) held.drop();
}

// Waits for a child of the caller. Whether it ended well; a child that hangs is left to the watchdog.
inline bool ended_well(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) != child) {
  }
  if (status == 0) return true;
  char text[64];
  const int length = std::snprintf(text, sizeof text, "child %d ended with status %d, by signal %d\n", child,
                                   WEXITSTATUS(status), WTERMSIG(status));
  [[maybe_unused]] const ssize_t told = write(2, text, static_cast<std::size_t>(length));
  return false;
}

// Writes and frees memory, which the allocator then has to return.
inline void free_much(std::size_t bytes, std::size_t block = MiB) {
  struct Link {
    Link* next;
  };
  Link* first = nullptr;
  for (std::size_t done = 0; done < bytes; done += block) {
    auto* link = static_cast<Link*>(malloc(block));
    if (!need_memory(link, block)) break;
    std::memset(link, 1, block);
    link->next = first;
    first = link;
  }
  while (first) {
    Link* next = first->next;
    free(first);
    first = next;
  }
}

// Rounds of what a test does a few hundred times, multiplied by CHAOS_FACTOR when run by hand.
inline int times(int count) {
  const char* factor = std::getenv("CHAOS_FACTOR");
  return factor ? count * std::atoi(factor) : count;
}

}  // namespace chaos
