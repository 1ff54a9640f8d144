// Heaps over the caller's memory and near code, as a program has them.
#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

#include "base/config.h"
#include "heap/regions.h"
#include "reheap/reheap.h"
#include "support/child.h"
#include "support/heaps.h"

namespace rh {
namespace {

rh_heap_stats stats_of_heap(rh_heap* heap) {
  rh_heap_stats stats = {};
  stats.struct_size = sizeof(stats);
  EXPECT_TRUE(rh_heap_stats_get(heap, &stats));
  return stats;
}

alignas(16) unsigned char g_memory[64 * 1024];

rh_heap* in_memory() {
  rh_heap* heap = rh_heap_create_in(g_memory, sizeof(g_memory));
  EXPECT_NE(heap, nullptr);
  return heap;
}

rh_heap* near_code() {
  rh_heap* heap = rh_heap_create_near(reinterpret_cast<void*>(fake::space_start()), 4 * kMiB);
  EXPECT_NE(heap, nullptr);
  return heap;
}

// Whatever names its blocks, they stay in the heap.
TEST(RegionApi, EveryFunctionKnowsItsBlocks) {
  for (rh_heap* heap : {in_memory(), near_code()}) {
    auto* block = static_cast<unsigned char*>(rh_heap_malloc(heap, 100));
    fill(block, 100, 1);
    EXPECT_EQ(rh_heap_of(block), heap);
    EXPECT_TRUE(rh_owns(block));
    EXPECT_GE(rh_usable_size(block), 100u);
    block = static_cast<unsigned char*>(rh_realloc(block, 3000));
    EXPECT_TRUE(intact(block, 100, 1));
    void* behind = rh_heap_malloc(heap, 16);
    block = static_cast<unsigned char*>(rh_heap_realloc(heap, block, 6000));
    EXPECT_TRUE(intact(block, 100, 1));
    EXPECT_EQ(rh_heap_of(block), heap);
    EXPECT_GE(rh_expand(block, 20000), 20000u);
    EXPECT_GE(rh_usable_size(block), 20000u);
    block = static_cast<unsigned char*>(rh_aligned_realloc(block, 4096, 7000));
    EXPECT_EQ(address_of(block) % 4096, 0u);
    EXPECT_TRUE(intact(block, 100, 1));
    rh_free_sized(behind, 16);
    rh_free_aligned_sized(block, 4096, 7000);
    fill(block = static_cast<unsigned char*>(rh_heap_malloc(heap, 500)), 500, 1);
    rh_free(block);
    block = static_cast<unsigned char*>(rh_heap_calloc(heap, 10, 50));
    EXPECT_TRUE(all_zero(block, 500));
    EXPECT_EQ(rh_realloc(block, 0), nullptr);
    void* many[10];
    EXPECT_EQ(rh_heap_alloc_batch(heap, 100, many, 10), 10u);
    EXPECT_EQ(stats_of_heap(heap).blocks, 10u);
    rh_free_batch(many, 10);
    EXPECT_EQ(stats_of_heap(heap).in_use, 0u);
    EXPECT_EQ(stats_of_heap(heap).held, 0u);
    EXPECT_GT(stats_of_heap(heap).held_peak, 6000u);
    rh_heap_destroy(heap);
  }
}

TEST(RegionApi, FailsAsOthersDo) {
  rh_heap* heap = in_memory();
  void* block = rh_heap_malloc(heap, 100);
  const volatile size_t no_power = 3, most = SIZE_MAX;
  auto fails = [](void* got, int error) { return got == nullptr && errno == error; };
  EXPECT_TRUE(fails(rh_heap_malloc(heap, sizeof(g_memory)), ENOMEM));
  EXPECT_TRUE(fails(rh_heap_malloc(heap, most), ENOMEM));
  EXPECT_TRUE(fails(rh_heap_calloc(heap, most, 2), ENOMEM));
  EXPECT_TRUE(fails(rh_heap_aligned_alloc(heap, no_power, 10), EINVAL));
  EXPECT_TRUE(fails(rh_heap_aligned_alloc(heap, kMaxAlignment, 10), ENOMEM));
  EXPECT_TRUE(fails(rh_realloc(block, sizeof(g_memory)), ENOMEM));
  EXPECT_TRUE(fails(rh_realloc(block, most), ENOMEM));
  EXPECT_EQ(rh_expand(block, sizeof(g_memory)), 0u);
  rh_heap_limit(heap, 1000);
  EXPECT_TRUE(fails(rh_heap_malloc(heap, 2000), ENOMEM));
  EXPECT_EQ(stats_of_heap(heap).limit, 1000u);
  EXPECT_GE(stats_of_heap(heap).refused, 1u);
  rh_free(block);
  rh_heap_destroy(heap);
  errno = 0;
  EXPECT_TRUE(fails(rh_heap_create_in(nullptr, 4096), EINVAL));
  EXPECT_TRUE(fails(rh_heap_create_in(g_memory, 64), EINVAL));
  EXPECT_TRUE(fails(rh_heap_create_in(rh_malloc(kMiB), kMiB), EINVAL));
  EXPECT_TRUE(fails(rh_heap_create_near(nullptr, kMiB), EINVAL));
  fake::fail_all(fake::Call::reserve, true);
  EXPECT_TRUE(fails(rh_heap_create_near(g_memory, kMiB), ENOMEM));
  fake::fail_all(fake::Call::reserve, false);
  fake::fail_all(fake::Call::commit, true);
  EXPECT_TRUE(fails(rh_heap_create_near(reinterpret_cast<void*>(fake::space_start()), kMiB), ENOMEM));
}

TEST(RegionApi, WalksEachBlockOnceWhateverIsFreed) {
  rh_heap* heap = near_code();
  std::vector<void*> blocks;
  for (size_t index = 0; index < 1000; ++index) blocks.push_back(rh_heap_malloc(heap, 16 + index % 500));
  struct Seen {
    std::vector<void*> blocks;
    bool frees;
  };
  auto visit = [](void* block, size_t size, void* context) {
    auto* seen = static_cast<Seen*>(context);
    EXPECT_GE(size, 16u);
    seen->blocks.push_back(block);
    if (seen->frees) rh_free(block);
    return true;
  };
  for (bool frees : {false, true}) {
    Seen seen{{}, frees};
    EXPECT_TRUE(rh_heap_walk(heap, visit, &seen));
    EXPECT_EQ(seen.blocks, blocks);
  }
  EXPECT_EQ(stats_of_heap(heap).blocks, 0u);
  rh_heap_destroy(heap);
}

TEST(RegionApi, TrimsAndIsCounted) {
  rh_heap* heap = near_code();
  rh_stats before = {}, after = {};
  before.struct_size = after.struct_size = sizeof(rh_stats);
  void* block = rh_heap_malloc(heap, 2 * kMiB);
  rh_stats_get(&before);
  rh_free(block);
  EXPECT_GE(rh_heap_trim(heap), 2 * kMiB);
  EXPECT_EQ(rh_heap_trim(heap), 0u);
  rh_stats_get(&after);
  EXPECT_GE(before.committed - after.committed, 2 * kMiB);
  EXPECT_NE(rh_heap_malloc(heap, 2 * kMiB), nullptr);
  rh_heap_reset(heap);
  EXPECT_GE(rh_trim(), 2 * kMiB);
  rh_heap_destroy(heap);
  rh_stats_get(&after);
  EXPECT_EQ(before.reserved - after.reserved, 4 * kMiB);
}

TEST(RegionApi, MisuseEndsTheProcess) {
  auto drop = [](auto) {};
  rh_heap* heap = in_memory();
  char* volatile block = static_cast<char*>(rh_heap_malloc(heap, 100));  // hidden from who sees misuse as it compiles
  char* volatile next = static_cast<char*>(rh_heap_malloc(heap, 100));
  char* volatile within = block + 16;
  EXPECT_DEATH(rh_free(within), "free of invalid pointer 0x\\w+: not the start of a live block");
  EXPECT_DEATH(drop(rh_usable_size(within)), "malloc_usable_size of invalid pointer");
  EXPECT_DEATH(drop(rh_realloc(within, 10)), "realloc of invalid pointer");
  EXPECT_DEATH(std::memset(block, 1, 128); rh_free(block), "was written to behind its end, seen at its free");
  EXPECT_DEATH(std::memset(block, 1, 128); block = static_cast<char*>(rh_realloc(block, 10)), "seen at its realloc");
  EXPECT_DEATH(rh_free(next); rh_free(next), "free of a block that is free already: 0x\\w+");
  EXPECT_DEATH(rh_free(block); std::memset(block, 1, 16);
               drop(rh_heap_malloc(heap, 100)), "write to free memory of a heap");
  rh_heap* other = near_code();
  EXPECT_DEATH(drop(rh_heap_realloc(other, block, 10)), "rh_heap_realloc of a block of another heap");
  EXPECT_DEATH(drop(rh_heap_realloc(heap, rh_malloc(10), 10)), "rh_heap_realloc of a block of another heap");
  rh_heap_destroy(heap);
  EXPECT_DEATH(rh_heap_destroy(heap), "rh_heap_destroy of invalid heap");
  EXPECT_DEATH(drop(rh_heap_malloc(heap, 10)), "rh_heap_malloc of invalid heap");
  rh_heap* again = in_memory();
  EXPECT_DEATH(drop(rh_heap_trim(heap)), "rh_heap_trim of invalid heap");
  rh_heap_destroy(again);
}

TEST(RegionApi, TheHardenedBuildLooksAtEveryByte) {
  if (!kHardened) GTEST_SKIP();
  rh_heap* heap = in_memory();
  auto* block = static_cast<char*>(rh_heap_malloc(heap, 100));
  EXPECT_EQ(rh_usable_size(block), 100u);
  char* volatile hidden = block;  // from who knows how long it is
  EXPECT_DEATH(hidden[100] = 0; rh_free(block), "of 100 bytes was written to behind its end");
  EXPECT_DEATH(rh_free_sized(block, 99), "of 100 bytes was freed as one of 99 bytes");
  rh_free_sized(block, 100);
  rh_heap_destroy(heap);
}

}  // namespace
}  // namespace rh
