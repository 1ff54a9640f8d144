// What the C API adds to malloc's rules, in the plain build and in the hardened one: resizing in place and to an
// alignment, sized free, batches, and what can be asked of one heap.
#include <errno.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/bits.h"
#include "platform/fake/fake.h"
#include "reheap/reheap.h"
#include "support/heaps.h"

// Both builds have these tests, by two names.
#ifdef RH_HARDENED
#define Api HardenedApi
#endif

namespace rh {
namespace {

using Found = std::map<void*, size_t>;

Found walk(rh_heap* heap) {
  Found found;
  void* last = nullptr;
  auto note = [&](void* block, size_t size) {
    EXPECT_LT(last, block);
    EXPECT_TRUE(found.emplace(block, size).second);
    last = block;
  };
  auto visit = [](void* block, size_t size, void* context) {
    (*static_cast<decltype(note)*>(context))(block, size);
    return true;
  };
  EXPECT_TRUE(rh_heap_walk(heap, visit, &note));
  return found;
}

// What compilers warn of: sizes that no block can have, and pointers to what is gone.
template <typename T> T hidden(T value) {
  T volatile unseen = value;
  return unseen;
}

rh_heap_stats stats_of(rh_heap* heap) {
  rh_heap_stats stats = {};
  stats.struct_size = sizeof(stats);
  EXPECT_TRUE(rh_heap_stats_get(heap, &stats));
  return stats;
}

size_t sum(const Found& found) {
  size_t bytes = 0;
  for (const auto& [block, size] : found) bytes += size;
  return bytes;
}

bool stop(void*, size_t, void* context) { return --*static_cast<int*>(context) != 0; }

// ---- blocks -------------------------------------------------------------------------------------

TEST(Api, WhatBecomesShorterStaysWhereThereIsNoMemoryForACopy) {
  void* small = rh_malloc(20'000);
  void* large = rh_malloc(kMiB);
  fake::fail_all(fake::Call::commit, true);
  fake::fail_all(fake::Call::reserve, true);
  for (size_t size : {size_t{300'000}, size_t{700}})
    while (rh_malloc(size) != nullptr) {}
  EXPECT_EQ(rh_realloc(small, 700), small);
  rh_free_sized(small, 700);
  EXPECT_EQ(rh_realloc(large, 300'000), large);
  rh_free_sized(large, 300'000);
  fake::fail_all(fake::Call::commit, false);
  fake::fail_all(fake::Call::reserve, false);
}

TEST(Api, ExpandNeverMovesNorShortens) {
  for (size_t size : {size_t{1}, size_t{24}, size_t{100}, size_t{3000}, kMaxSmall, size_t{100000}, 3 * kMiB}) {
    void* block = rh_malloc(size);
    fill(block, size, 1);
    const size_t usable = rh_usable_size(block);
    EXPECT_EQ(rh_expand(block, 0), usable);
    EXPECT_EQ(rh_expand(block, usable), usable);
    errno = 0;
    for (size_t more : {usable + 1, usable + usable / 2, 64 * kMiB, SIZE_MAX / 2, SIZE_MAX}) {
      const size_t before = rh_usable_size(block), got = rh_expand(block, more);
      EXPECT_TRUE(got == 0 || got >= more) << size << " to " << more;
      EXPECT_EQ(rh_usable_size(block), got == 0 ? before : got);
      EXPECT_TRUE(intact(block, size, 1));
      if (got != 0) std::memset(static_cast<char*>(block) + size, 7, got - size);
    }
    EXPECT_EQ(errno, 0);
    EXPECT_TRUE(intact(block, size, 1));
    rh_free(block);
  }
  EXPECT_EQ(rh_expand(nullptr, 0), 0u);
  EXPECT_EQ(rh_expand(nullptr, 10), 0u);
}

TEST(Api, ALargeBlockExpandsIntoWhatIsFreeBehindIt) {
  void* block = rh_realloc(rh_malloc(7 * kMiB), 4 * kMiB);
  fill(block, 4 * kMiB, 1);
  ASSERT_GE(rh_expand(block, 5 * kMiB), 5 * kMiB);
  EXPECT_TRUE(intact(block, 4 * kMiB, 1));
  fill(block, 5 * kMiB, 2);
  EXPECT_TRUE(intact(block, 5 * kMiB, 2));
  rh_free_sized(block, 5 * kMiB);
}

TEST(Api, ABlockOfALimitedHeapExpandsUpToTheLimit) {
  rh_heap* heap = rh_heap_create();
  rh_heap_limit(heap, 5 * kMiB);
  void* block = rh_heap_malloc(heap, 3 * kMiB);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(rh_expand(block, 6 * kMiB), 0u);
  const size_t grown = rh_expand(block, 4 * kMiB);
  EXPECT_TRUE(grown == 0 || grown >= 4 * kMiB);
  EXPECT_LE(stats_of(heap).held, 5 * kMiB);
  rh_heap_destroy(heap);
}

TEST(Api, AlignedReallocKeepsContentAndAlignment) {
  for (size_t alignment = 1; alignment <= kMiB; alignment *= 4) {
    void* block = nullptr;
    size_t before = 0;
    for (size_t size : {size_t{1}, size_t{40}, size_t{5000}, 2 * kMiB, size_t{300}, size_t{8}}) {
      block = rh_aligned_realloc(block, alignment, size);
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(address_of(block) % alignment, 0u);
      EXPECT_GE(rh_usable_size(block), size);
      EXPECT_TRUE(before == 0 || intact(block, std::min(before, size) / 8 * 8, before)) << size;
      fill(block, size, size);
      before = size;
    }
    rh_free_aligned_sized(block, alignment, before);
  }
  // From any block to an aligned one.
  for (size_t size : {size_t{16}, size_t{200}, kMiB}) {
    void* block = rh_malloc(size);
    fill(block, size, 1);
    block = rh_aligned_realloc(block, 4096, size + 1);
    EXPECT_EQ(address_of(block) % 4096, 0u);
    EXPECT_TRUE(intact(block, size, 1));
    EXPECT_EQ(rh_aligned_realloc(block, 4096, 0), nullptr);
  }
}

TEST(Api, AlignedReallocRefusesAndTheBlockStands) {
  void* block = rh_malloc(100);
  fill(block, 100, 1);
  for (size_t alignment : {size_t{0}, size_t{3}, size_t{24}, 2 * kMaxAlignment}) {
    errno = 0;
    EXPECT_EQ(rh_aligned_realloc(block, alignment, 200), nullptr);
    EXPECT_EQ(errno, EINVAL);
  }
  errno = 0;
  EXPECT_EQ(rh_aligned_realloc(block, 64, hidden(SIZE_MAX)), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_TRUE(intact(block, 100, 1));
  rh_free_sized(block, 100);
}

TEST(Api, AlignedReallocStaysInTheHeap) {
  rh_heap* heap = rh_heap_create();
  void* block = rh_aligned_realloc(rh_heap_malloc(heap, 100), 512, 3000);
  EXPECT_EQ(rh_heap_of(block), heap);
  EXPECT_EQ(address_of(block) % 512, 0u);
  block = rh_aligned_realloc(block, 512, 3 * kMiB);
  EXPECT_EQ(rh_heap_of(block), heap);
  rh_heap_destroy(heap);
}

TEST(Api, SizedFree) {
  rh_free_sized(nullptr, 10);
  rh_free_aligned_sized(nullptr, 64, 10);
  for (size_t size : {size_t{0}, size_t{1}, size_t{100}, size_t{5000}, kMaxSmall, kMiB}) {
    rh_free_sized(rh_malloc(size), size);
    rh_free_sized(rh_realloc(rh_malloc(10), size + 1), size + 1);
    rh_free_aligned_sized(rh_aligned_alloc(256, size), 256, size);
    void* block = rh_malloc(size + 1);
    const size_t grown = rh_expand(block, size + 2);
    rh_free_sized(block, grown == 0 ? size + 1 : size + 2);
  }
}

TEST(Api, SizedFreeOfAnotherSizeIsReportedWhereSizesAreKnown) {
  for (size_t size : {size_t{100}, size_t{100000}}) {
    void* block = rh_malloc(size);
    if (kHardened)
      EXPECT_DEATH(rh_free_sized(block, size - 1), "was freed as one of");
    else
      rh_free_sized(block, size - 1);
  }
}

// ---- batches ------------------------------------------------------------------------------------

TEST(Api, BatchesMakeAndFree) {
  rh_heap* heap = rh_heap_create();
  rh_heap* bound = rh_heap_create_bound();
  for (rh_heap* from : {static_cast<rh_heap*>(nullptr), heap, bound}) {
    auto make = [from](size_t size, void** blocks, size_t count) {
      return from == nullptr ? rh_alloc_batch(size, blocks, count) : rh_heap_alloc_batch(from, size, blocks, count);
    };
    EXPECT_EQ(make(100, nullptr, 0), 0u);
    for (size_t size : {size_t{0}, size_t{24}, size_t{1000}, kMaxSmall, size_t{100000}}) {
      std::vector<void*> blocks(size > 10000 ? 20 : 1000);
      ASSERT_EQ(make(size, blocks.data(), blocks.size()), blocks.size());
      for (size_t at = 0; at < blocks.size(); ++at) fill(blocks[at], size, at);
      for (size_t at = 0; at < blocks.size(); ++at) {
        EXPECT_TRUE(intact(blocks[at], size, at));
        EXPECT_EQ(address_of(blocks[at]) % 16, 0u);
        EXPECT_TRUE(size == 0 || rh_heap_of(blocks[at]) == from);
      }
      blocks[1] = (rh_free(blocks[1]), nullptr);
      rh_free_batch(blocks.data(), blocks.size());
    }
  }
  rh_free_batch(nullptr, 0);
  EXPECT_TRUE(walk(heap).empty());
  EXPECT_TRUE(walk(bound).empty());
  rh_heap_destroy(heap);
  rh_heap_destroy(bound);
}

TEST(Api, ARefusedRequestCountsOnce) {
  rh_free(rh_malloc(100));  // hardened builds keep it from use
  for (rh_heap* heap : {rh_heap_create(), rh_heap_create_bound()}) {
    rh_heap_limit(heap, 2 * kMiB);
    size_t refused = 0;
    for (size_t size : {size_t{100}, size_t{5000}, 4 * kMiB}) {
      while (rh_heap_malloc(heap, size) != nullptr) {}
      EXPECT_EQ(stats_of(heap).refused, ++refused) << size;
    }
    rh_heap_destroy(heap);
  }
}

TEST(Api, ABatchThatDoesNotFitIsMadeInPart) {
  std::vector<void*> blocks(100000, nullptr);
  rh_heap* heap = rh_heap_create();
  rh_heap_limit(heap, 4 * kMiB);
  errno = 0;
  const size_t made = rh_heap_alloc_batch(heap, 1000, blocks.data(), blocks.size());
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_GT(made, 3000u);
  EXPECT_LT(made, 4 * kMiB / 1000);
  EXPECT_GT(stats_of(heap).refused, 0u);
  rh_free_batch(blocks.data(), made);
  rh_heap_limit(heap, 0);
  fake::limit_committed(fake::committed_bytes() + 4 * kMiB);
  for (rh_heap* from : {heap, static_cast<rh_heap*>(nullptr)}) {
    errno = 0;
    const size_t some = from != nullptr ? rh_heap_alloc_batch(from, 1000, blocks.data(), blocks.size())
                                        : rh_alloc_batch(1000, blocks.data(), blocks.size());
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_GT(some, 1000u);
    EXPECT_LT(some, blocks.size());
    rh_free_batch(blocks.data(), some);
    rh_trim();
  }
  errno = 0;
  EXPECT_EQ(rh_alloc_batch(SIZE_MAX, blocks.data(), 2), 0u);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(rh_heap_alloc_batch(heap, SIZE_MAX / 2 + 1, blocks.data(), 2), 0u);
  rh_heap_destroy(heap);
}

// ---- one heap -----------------------------------------------------------------------------------

int g_number = 0;

TEST(Api, HeapOf) {
  int local = 0;
  for (void* pointer : {static_cast<void*>(nullptr), static_cast<void*>(&local), static_cast<void*>(&g_number),
                        reinterpret_cast<void*>(uintptr_t{1}), reinterpret_cast<void*>(~uintptr_t{0})})
    EXPECT_EQ(rh_heap_of(pointer), nullptr);
  rh_heap* heap = rh_heap_create();
  rh_heap* bound = rh_heap_create_bound();
  for (size_t size : {size_t{0}, size_t{16}, size_t{5000}, kMaxSmall, 3 * kMiB}) {
    void* of_malloc = rh_malloc(size);
    EXPECT_EQ(rh_heap_of(of_malloc), nullptr);
    for (rh_heap* from : {heap, bound}) {
      auto* block = static_cast<char*>(rh_heap_malloc(from, size));
      EXPECT_EQ(rh_heap_of(block), from) << size;
      EXPECT_EQ(rh_heap_of(block + size / 2), from);
      EXPECT_EQ(rh_heap_of(block + (size == 0 ? 0 : size - 1)), from);
    }
    rh_free(of_malloc);
  }
  void* block = rh_heap_malloc(heap, 2 * kMiB);
  rh_free(hidden(block));
  rh_heap_destroy(heap);
  EXPECT_EQ(rh_heap_of(block), nullptr);
  rh_heap_destroy(bound);
}

#ifndef RH_HARDENED
TEST(Api, HeapOfAnyByteOfAGuardedBlock) {
  rh_heap* heap = rh_heap_create();
  ASSERT_TRUE(rh_option_set("sample_guard", "1"));
  auto* block = static_cast<char*>(rh_heap_malloc(heap, 5000));
  EXPECT_TRUE(find_block(block).is_guarded());
  EXPECT_EQ(rh_heap_of(block), heap);
  EXPECT_EQ(rh_heap_of(block + 1), heap);
  EXPECT_EQ(rh_heap_of(block + 4999), heap);
  rh_heap_destroy(heap);
  EXPECT_EQ(rh_heap_of(block + 1), nullptr);
  EXPECT_TRUE(rh_option_set("sample_guard", "0"));
}
#endif

TEST(Api, AWalkVisitsWhatIsInUse) {
  rh_heap* heap = rh_heap_create();
  rh_heap* bound = rh_heap_create_bound();
  for (rh_heap* from : {heap, bound}) {
    EXPECT_TRUE(walk(from).empty());
    std::vector<void*> freed;
    Found live;
    for (size_t count = 0; count < 4000; ++count) {
      const size_t size = count % 50 == 0 ? 40000 + count : count % 700;
      void* block = rh_heap_malloc(from, size);
      if (count % 3 == 0)
        freed.push_back(block);
      else
        live.emplace(block, rh_usable_size(block));
      rh_free(rh_malloc(size));
    }
    for (void* block : freed) rh_free(block);
    EXPECT_EQ(walk(from), live);
    rh_heap_trim(from);
    EXPECT_EQ(walk(from), live);
    // Nothing is at hand any more, so that the figures are those of the blocks.
    // (In the hardened build a block is shorter than its room.)
    if (!kHardened) EXPECT_EQ(stats_of(from).in_use, sum(live));
    EXPECT_GE(stats_of(from).in_use, sum(live));
    EXPECT_EQ(stats_of(from).blocks, live.size());
    rh_heap_reset(from);
    EXPECT_TRUE(walk(from).empty());
    EXPECT_EQ(stats_of(from).in_use, 0u);
  }
  rh_heap_destroy(heap);
  rh_heap_destroy(bound);
}

// Most of their blocks are free, and the pages of these with the OS.
TEST(Api, AWalkPassesOverHoles) {
  rh_heap* heap = rh_heap_create();
  std::vector<void*> blocks(20000);
  ASSERT_EQ(rh_heap_alloc_batch(heap, 500, blocks.data(), blocks.size()), blocks.size());
  Found live;
  for (size_t at = 0; at < blocks.size(); ++at) {
    std::memset(blocks[at], 0xee, 500);
    if (at % 100 == 0)
      live.emplace(blocks[at], rh_usable_size(blocks[at]));
    else
      rh_free(blocks[at]);
  }
  EXPECT_EQ(walk(heap), live);
  rh_heap_trim(heap);
  EXPECT_EQ(walk(heap), live);
  EXPECT_EQ(stats_of(heap).blocks, live.size());
  rh_heap_destroy(heap);
}

TEST(Api, AVisitMayFreeAndAllocateAndStop) {
  rh_heap* heap = rh_heap_create();
  std::vector<void*> blocks(3000);
  ASSERT_EQ(rh_heap_alloc_batch(heap, 100, blocks.data(), blocks.size()), blocks.size());
  int left = 1000;
  EXPECT_FALSE(rh_heap_walk(heap, stop, &left));
  EXPECT_EQ(left, 0);
  // What it makes may be visited too.
  auto free_and_make = [](void* block, size_t size, void* context) {
    if (size >= 40000) return true;
    rh_free(block);
    return rh_heap_malloc(static_cast<rh_heap*>(context), 40000) != nullptr;
  };
  EXPECT_TRUE(rh_heap_walk(heap, free_and_make, heap));
  const Found after = walk(heap);
  EXPECT_EQ(after.size(), blocks.size());
  for (const auto& [block, size] : after) EXPECT_GE(size, 40000u) << block;
  auto reset = [](void*, size_t, void* context) { return (rh_heap_reset(static_cast<rh_heap*>(context)), true); };
  EXPECT_TRUE(rh_heap_walk(heap, reset, heap));
  EXPECT_TRUE(walk(heap).empty());
  rh_heap_destroy(heap);
}

TEST(Api, AHeapBoundToAnotherThreadIsNotWalkedWhileThatLives) {
  Actor other;
  rh_heap* bound = other([] { return rh_heap_create_bound(); });
  void* block = other([&] { return rh_heap_malloc(bound, 100); });
  void* freed_here = other([&] { return rh_heap_malloc(bound, 100); });
  rh_free(freed_here);
  int left = 1;
  errno = 0;
  EXPECT_FALSE(rh_heap_walk(bound, stop, &left));
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(left, 1);
  EXPECT_EQ(other([&] { return walk(bound); }), (Found{{block, rh_usable_size(block)}}));
  rh_heap_trim(bound);
  other.end();
  EXPECT_EQ(walk(bound), (Found{{block, rh_usable_size(block)}}));
  rh_heap_destroy(bound);
}

TEST(Api, ATrimmedHeapHoldsLess) {
  rh_heap* heap = rh_heap_create();
  void* kept = rh_heap_malloc(heap, 100);
  std::vector<void*> blocks(2000);
  ASSERT_EQ(rh_heap_alloc_batch(heap, 1000, blocks.data(), blocks.size()), blocks.size());
  rh_free_batch(blocks.data(), blocks.size());
  const size_t before = stats_of(heap).held, less = rh_heap_trim(heap);
  EXPECT_GT(less, 0u);
  EXPECT_EQ(stats_of(heap).held, before - less);
  EXPECT_EQ(stats_of(heap).held, kUnitSize);
  EXPECT_EQ(rh_heap_trim(heap), 0u);
  rh_free(kept);
  rh_heap_trim(heap);
  EXPECT_EQ(stats_of(heap).held, 0u);
  rh_heap_destroy(heap);
}

TEST(Api, HeapsThatAreGoneAreNamed) {
  rh_heap* heap = rh_heap_create();
  rh_heap_destroy(heap);
  void* block = nullptr;
  EXPECT_DEATH((void)rh_heap_trim(heap), "rh_heap_trim of invalid heap");
  EXPECT_DEATH((void)rh_heap_walk(heap, stop, nullptr), "rh_heap_walk of invalid heap");
  EXPECT_DEATH(block = (void*)rh_heap_alloc_batch(heap, 10, &block, 1), "rh_heap_alloc_batch of invalid heap");
  EXPECT_DEATH((void)rh_heap_walk(nullptr, stop, nullptr), "rh_heap_walk of invalid heap");
  rh_heap* other = rh_heap_create();
  EXPECT_NE(rh_heap_malloc(other, 100), nullptr);
  auto destroy = [](void*, size_t, void* context) { return (rh_heap_destroy(static_cast<rh_heap*>(context)), true); };
  for (int count = 0; count < 100; ++count) EXPECT_NE(rh_heap_malloc(other, 100), nullptr);
  EXPECT_DEATH((void)rh_heap_walk(other, destroy, other), "rh_heap_destroy of invalid heap");
}

}  // namespace
}  // namespace rh

#undef Api
