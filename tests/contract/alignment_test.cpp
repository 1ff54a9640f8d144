// Every power of two, from every function that takes one.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "requests.h"
#include "support/library.h"
#include "support/names.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

const std::size_t block_sizes[] = {0,    1,    7,     8,     15,    16,     17,     24,      100,    1000,
                                   4095, 4096, 10000, 32768, 65535, 100000, 262144, 1 << 20, 3000001};

// A 32-bit program may well have no gap of this size left.
bool may_be_refused(std::size_t alignment) { return narrow && alignment >= 64 * MiB; }

struct AlignedBlock {
  void* block;
  std::size_t size;
  const AlignedMaker* maker;
};

void check_block(const AlignedMaker& maker, std::size_t alignment, std::size_t size, std::vector<AlignedBlock>& live) {
  errno = 0;
  void* block = maker.make(opaque(alignment), opaque(size));
  if (!block && may_be_refused(alignment)) {
    EXPECT_EQ(errno, ENOMEM);
    return;
  }
  ASSERT_NE(block, nullptr) << maker.call << '(' << alignment << ", " << size << ')';
  EXPECT_TRUE(aligned(block, alignment)) << maker.call << '(' << alignment << ", " << size << ')';
  fill(block, size, reinterpret_cast<std::uintptr_t>(block));
  live.push_back({block, size, &maker});
}

TEST(Alignment, EveryPowerOfTwo) {
  for (std::size_t alignment = 1; alignment <= (std::size_t{1} << 30); alignment *= 2) {
    // Far-aligned blocks are held one at a time: together they would need more address space than a
    // 32-bit program has.
    const bool far = alignment >= (narrow ? 4 * MiB : 64 * MiB);
    std::vector<AlignedBlock> all;
    for (const std::size_t size : block_sizes) {
      for (const AlignedMaker& maker : aligned_makers()) check_block(maker, alignment, size, all);
      for (; far && !all.empty(); all.pop_back()) all.back().maker->drop(all.back().block);
    }
    for (const auto& [block, size, maker] : all) {
      EXPECT_TRUE(intact(block, size, reinterpret_cast<std::uintptr_t>(block)))
          << alignment << ", " << size << ": blocks overlap";
      maker->drop(block);
    }
  }
}

TEST(Alignment, PlainBlocksSuitAnyType) {
  std::vector<void*> live;
  for (const std::size_t size : interesting_sizes(256 * KiB, 600)) {
    live.push_back(malloc(size));
    live.push_back(calloc(1, size));
    live.push_back(realloc(nullptr, size));
    // An odd size keeps its neighbours from being aligned by luck.
    live.push_back(realloc(malloc(size / 2 + 1), size + 1));
  }
  for (void* block : live) {
    EXPECT_TRUE(aligned(block, alignof(std::max_align_t))) << block;
    free(block);
  }
}

TEST(Alignment, ReallocOfAnAlignedBlockKeepsItsContent) {
  for (std::size_t alignment = 16; alignment <= 4 * MiB; alignment *= 4) {
    for (const std::size_t from : {1, 100, 5000, 300000}) {
      for (const std::size_t to : {1, 50, 4999, 5001, 1000000}) {
        for (const AlignedMaker& maker : aligned_makers()) {
          void* block = maker.make(alignment, from);
          fill(block, from, 11);
          block = maker.resize(block, alignment, to);
          ASSERT_NE(block, nullptr);
          EXPECT_TRUE(intact(block, from < to ? from : to, 11))
              << maker.call << ' ' << alignment << ": " << from << " to " << to;
          maker.drop(block);
        }
      }
    }
  }
}

// Alignment costs address space, not memory: what lies before the block is not touched.
SCENARIO(alignment_cost) {
  auto* const make = aligned_makers().front().make;
  const std::size_t before = resident();
  for (int at = 0; at < 200; ++at) {
    auto* block = static_cast<char*>(make(MiB, 100));
    NEED(block, "block %d", at);
    block[0] = 1;
  }
  for (std::size_t alignment = 2 * MiB; alignment <= (narrow ? 64 * MiB : 1024 * MiB); alignment *= 2) {
    auto* block = static_cast<char*>(make(alignment, 3000));
    NEED(block, "alignment %zu", alignment);
    block[2999] = 1;
  }
  const std::size_t grown = resident() - before;
  NEED(grown < 8 * MiB, "%zu KiB for 210 small blocks", grown / KiB);
  return 0;
}

TEST(Alignment, CostsNoMemory) { EXPECT_SCENARIO("alignment_cost"); }

TEST(Alignment, CostsNoMemoryInHugePages) {
  EXPECT_SCENARIO("alignment_cost", {.environment = {{"REHEAP_HUGE_PAGES", "1"}}});
}

}  // namespace
