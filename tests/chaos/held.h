// What every program here does with memory.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "support/held.h"
#include "support/process.h"

namespace chaos {

using namespace contract;

// The status of a test that cannot be run here.
constexpr int kSkipped = 77;

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
  while (waitpid(child, &status, 0) != child) {}
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
