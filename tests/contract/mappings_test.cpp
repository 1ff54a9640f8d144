// No mappings left, or no room to grow into: Linux limits that no other test reaches.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "support/chain.h"
#include "support/library.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

// Uses up the kernel's count of mappings, so that whatever would split one fails.
int take_all_mappings() {
  const std::size_t page = 4096;
  int taken = 0;
  for (; taken < 400000; ++taken) {
    const int protection = taken % 2 ? PROT_READ : PROT_READ | PROT_WRITE;
    if (mmap(nullptr, page, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) break;
  }
  return taken;
}

SCENARIO(no_mappings_left) {
  Chain chain;
  Chain kept;
  Random random(31);
  while (chain.bytes() + kept.bytes() < 150 * MiB) {
    const std::size_t size = sizeof(Link) + random.size(random.one_in(50) ? 20 * MiB : 256 * KiB);
    void* block = malloc(size);
    NEED(block);
    (random.one_in(2) ? chain : kept).add(block, size);
  }
  const int taken = take_all_mappings();
  if (taken == 400000) return 77;  // this kernel's limit is too high to reach
  chain.free_until(0);
  nap(1.2);  // returning memory after the decay time now fails
  for (int round = 0; round < 3000; ++round) {
    const std::size_t size = sizeof(Link) + random.size(random.one_in(50) ? 20 * MiB : 256 * KiB);
    errno = 0;
    void* block = malloc(size);
    NEED(block || errno == ENOMEM, "errno is %d", errno);
    if (block) chain.add(block, size);
    if (chain.bytes() > 60 * MiB) chain.free_until(20 * MiB);
  }
  chain.free_until(0);
  kept.free_until(0);
  return 0;
}

TEST(LimitsOnce, NoMappingsLeft) {
  const Outcome outcome = run("no_mappings_left");
  if (outcome.code == 77) GTEST_SKIP() << "vm.max_map_count is too high to be reached";
  EXPECT_TRUE(outcome.succeeded()) << outcome.describe();
}

// The end of the contiguous mappings that start with the one a block lies in.
std::uintptr_t end_of_mappings(const void* block) {
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  NEED(maps);
  std::uintptr_t start, end, found = 0;
  char line[4096];
  while (std::fgets(line, sizeof line, maps)) {
    NEED(std::sscanf(line, "%zx-%zx", &start, &end) == 2);
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    if ((start <= address && address < end) || start == found) found = end;
  }
  std::fclose(maps);
  return found;
}

// With 4 TiB, or as much as there is room for.
void settle_behind(const void* block) {
  void* place = reinterpret_cast<void*>(end_of_mappings(block));
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  for (std::uint64_t size = std::uint64_t{4} << 40; size >= MiB; size /= 2)
    if (mmap(place, static_cast<std::size_t>(size), PROT_NONE, kFlags, -1, 0) != MAP_FAILED) return;
}

// Another mapping takes the addresses that the heap would have grown into, again and again.
SCENARIO(nothing_free_behind) {
  std::vector<char*> blocks{static_cast<char*>(malloc(100))};
  for (int round = 0; round < 3; ++round) {
    settle_behind(blocks.back());
    constexpr std::size_t kSize = 1024 * MiB;
    blocks.push_back(static_cast<char*>(malloc(kSize)));
    NEED(blocks.back(), "round %d", round);
    blocks.back()[0] = blocks.back()[kSize - 1] = 1;
    NEED(malloc_usable_size(blocks.back()) >= kSize);
  }
  // Whatever walks all memory skips the gaps.
  const std::size_t before = resident();
  std::thread([] {
    const pid_t child = fork();
    if (child == 0) {
      free(malloc(100));
      _exit(0);
    }
    NEED(await(child, 20) == 0);
  }).join();
  const auto info = CONTRACT_FIND(mallinfo2)();
  NEED(info.uordblks + info.hblkhd >= 3 * 1024 * MiB);
  NEED(resident() < before + 64 * MiB, "%zu MiB more", (resident() - before) / MiB);
  for (char* block : blocks) free(block);
  return 0;
}

TEST(LimitsOnce, NothingFreeBehind) {
  if (narrow) GTEST_SKIP() << "there is no such room in 32 bits";
  EXPECT_SCENARIO("nothing_free_behind");
}

}  // namespace
