// Huge pages, when they are asked for, are asked for all of the heap's memory, so that it stays one mapping. Else for
// what a large heap has grown by last, which is then a mapping of its own.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

struct Mapping {
  std::uintptr_t start = 0, end = 0;
  bool huge = false;
};

std::vector<Mapping> mappings() {
  std::ifstream file("/proc/self/smaps");
  std::vector<Mapping> all;
  for (std::string line; std::getline(file, line);) {
    Mapping mapping;
    if (std::sscanf(line.c_str(), "%zx-%zx ", &mapping.start, &mapping.end) == 2) all.push_back(mapping);
    if (line.starts_with("VmFlags:")) all.back().huge = line.find(" hg") != std::string::npos;
  }
  return all;
}

// How many mappings the blocks lie in, and how many of these are to be huge pages.
int tell_mappings(const std::vector<void*>& blocks) {
  int of_blocks = 0, huge = 0;
  for (const Mapping& mapping : mappings()) {
    bool holds = false;
    for (const void* block : blocks) {
      const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(block);
      holds = holds || (address >= mapping.start && address < mapping.end);
    }
    if (!holds) continue;
    of_blocks += 1;
    huge += mapping.huge;
  }
  std::printf("%d %d", of_blocks, huge);
  return 0;
}

std::vector<void*> touched(int count, std::size_t size) {
  std::vector<void*> blocks;
  for (int at = 0; at < count; ++at) blocks.push_back(std::memset(malloc(size), 1, 1));
  return blocks;
}

SCENARIO(mappings_of_64_mib) {
  std::vector<void*> blocks = touched(60000, 1000);
  blocks.push_back(std::memset(malloc(4 * MiB), 1, 4 * MiB));
  return tell_mappings(blocks);
}

SCENARIO(mappings_of_200_mib) { return tell_mappings(touched(200000, 1000)); }

SCENARIO(mappings_of_200_mib_of_buffers) { return tell_mappings(touched(13000, 16000)); }

// Behind 64 MiB that were written throughout, 400 MB of which each block has one byte written.
SCENARIO(sparse_behind_dense) {
  for (int at = 0; at < 64; ++at) std::memset(malloc(1 << 20), 1, 1 << 20);
  const std::size_t before = resident();
  touched(1000, 400000);
  std::printf("%zu", (resident() - before) >> 10);
  return 0;
}

struct Counts {
  int of_blocks = 0, huge = 0;
};

Counts counts(const Outcome& outcome) {
  EXPECT_TRUE(outcome.succeeded()) << outcome.describe();
  Counts result;
  EXPECT_EQ(std::sscanf(outcome.out.c_str(), "%d %d", &result.of_blocks, &result.huge), 2) << outcome.describe();
  return result;
}

Outcome run_with(const char* huge_pages, const char* scenario) {
  return run(scenario, {.environment = {{"REHEAP_HUGE_PAGES", huge_pages}}});
}

bool kernel_has_some() {
  return run_with("1", "mappings_of_64_mib").err.find("REHEAP_HUGE_PAGES=1 is not possible") == std::string::npos;
}

TEST(HugePages, AreAskedForAllOfTheHeap) {
  if (!kernel_has_some()) GTEST_SKIP() << "the kernel has none";
  const Counts asked = counts(run_with("1", "mappings_of_64_mib"));
  const Counts plain = counts(run_with("0", "mappings_of_64_mib"));
  EXPECT_EQ(plain.huge, 0);
  EXPECT_EQ(asked.huge, asked.of_blocks);
  // Pieces of a 32-bit heap lie side by side, and are one mapping, by chance.
  if (!narrow) EXPECT_LE(asked.of_blocks, plain.of_blocks);
}

TEST(HugePages, AreAskedForWhatALargeHeapGrewByLast) {
  if (narrow) GTEST_SKIP() << "pieces of a 32-bit heap are short";
  if (!kernel_has_some()) GTEST_SKIP() << "the kernel has none";
  // What goes back for its age ends the wish, and a mapping, so that a slow run would have more of them.
  const Counts large = counts(run("mappings_of_200_mib", {.environment = {{"REHEAP_DECAY_MS", "60000"}}}));
  EXPECT_EQ(large.huge, is_hardened() ? 0 : 1);
  EXPECT_LE(large.of_blocks, 4);
  EXPECT_EQ(counts(run_with("0", "mappings_of_200_mib")).huge, 0);
  EXPECT_EQ(counts(run("mappings_of_200_mib_of_buffers")).huge, 0) << "which may be touched at their beginnings alone";
}

int resident_kib(const Outcome& outcome) {
  EXPECT_TRUE(outcome.succeeded()) << outcome.describe();
  return std::atoi(outcome.out.c_str());
}

// A system may give them to all memory, asked or not.
TEST(HugePages, AreNotAskedForWhatMayBeSparse) {
  const int unasked = resident_kib(run_with("0", "sparse_behind_dense"));
  EXPECT_LT(resident_kib(run("sparse_behind_dense")), unasked + 28 * 1024) << "KiB, of which 4,000 were written to";
}

}  // namespace
