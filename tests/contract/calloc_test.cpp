// calloc returns zeros: fresh memory without touching it, and recycled memory cleared.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "support/library.h"
#include "support/names.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

void dirty_and_free(std::size_t size, int count) {
  std::vector<void*> blocks;
  for (int at = 0; at < count; ++at) {
    void* block = malloc(size);
    std::memset(block, 0xa5, usable(block));
    blocks.push_back(block);
  }
  for (void* block : blocks) free(block);
}

TEST(Calloc, ZeroesRecycledBlocksOfEverySize) {
  for (const std::size_t size : interesting_sizes(4 * MiB, 1100)) {
    const int count = size < 4 * KiB ? 8 : 2;
    dirty_and_free(size, count);
    std::vector<void*> blocks;
    for (int at = 0; at < count; ++at) {
      void* block = at % 2 ? calloc(size, opaque<std::size_t>(1)) : calloc(opaque<std::size_t>(1), size);
      ASSERT_NE(block, nullptr);
      EXPECT_TRUE(all_zero(block, size)) << size;
      std::memset(block, 0x5a, usable(block));
      blocks.push_back(block);
    }
    for (void* block : blocks) free(block);
  }
}

// Memory freed as one size is reused as another: whole slabs and spans change their use.
TEST(Calloc, ZeroesMemoryThatHadAnotherSize) {
  const std::vector<std::pair<std::size_t, int>> uses = {{32, 60000}, {100000, 30}, {700, 4000}, {3 * MiB, 1},
                                                         {5000, 600}, {16, 100000}, {40000, 60}};
  for (const auto& [dirty_size, dirty_count] : uses) {
    for (const auto& [size, count] : uses) {
      dirty_and_free(dirty_size, dirty_count);
      std::vector<void*> blocks;
      for (int at = 0; at < count / 2 + 1; ++at) {
        blocks.push_back(calloc(1, size));
        ASSERT_TRUE(all_zero(blocks.back(), size)) << dirty_size << " then " << size;
      }
      for (void* block : blocks) free(block);
    }
  }
}

TEST(Calloc, ZeroesAmongChurn) {
  Random random(17);
  struct Live {
    void* block = nullptr;
    std::size_t size = 0;
  };
  std::vector<Live> live(2000);
  for (int round = 0; round < 150000; ++round) {
    Live& slot = live[random.below(live.size())];
    free(slot.block);
    slot.size = random.size(round % 64 ? 8 * KiB : MiB);
    if (random.one_in(2)) {
      slot.block = calloc(1, slot.size);
      ASSERT_TRUE(all_zero(slot.block, slot.size)) << slot.size << " in round " << round;
    } else {
      slot.block = malloc(slot.size);
    }
    std::memset(slot.block, 0xc3, usable(slot.block));
  }
  for (const Live& slot : live) free(slot.block);
}

constexpr std::size_t kHuge = narrow ? 256 * MiB : 1024 * MiB;

SCENARIO(huge_calloc) {
  const std::size_t before = resident();
  auto* block = static_cast<unsigned char*>(calloc(kHuge / 16, 16));
  NEED(block);
  NEED(resident() < before + 8 * MiB, "%zu KiB touched", (resident() - before) / KiB);
  NEED(peak_resident() < before + 8 * MiB, "touched, then given back");
  for (std::size_t at = 0; at < kHuge; at += 16 * MiB + 4096) NEED(block[at] == 0, "at %zu", at);
  NEED(block[kHuge - 1] == 0);
  NEED(resident() < before + 12 * MiB, "%zu KiB", (resident() - before) / KiB);
  free(block);
  return 0;
}

TEST(Calloc, DoesNotTouchAHugeBlock) { EXPECT_SCENARIO("huge_calloc"); }

SCENARIO(large_recycled_calloc) {
  for (const std::size_t size : {5 * MiB, 20 * MiB, 64 * MiB, 100 * MiB}) {
    void* block = malloc(size);
    NEED(block);
    std::memset(block, 0xee, size);
    free(block);
    block = calloc(1, size - 4097);
    NEED(block);
    NEED(all_zero(block, size - 4097), "%zu", size);
    free(block);
  }
  return 0;
}

TEST(Calloc, ZeroesRecycledLargeBlocks) { EXPECT_SCENARIO("large_recycled_calloc"); }

}  // namespace
