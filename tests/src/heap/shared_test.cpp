// First-class heaps.
#include "base/bits.h"
#include "heap/shared.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "heap/idle.h"
#include "heap/registry.h"
#include "heap/sampled.h"
#include "heap/tags.h"
#include "support/heaps.h"

namespace rh {
namespace {

void* take(Heap* heap, size_t size) { return allocate_in(heap, kBlockAlign, size, false); }

TEST(Shared, ServesAllSizesAndKnowsItsBlocks) {
  Heap* heap = shared::create();
  ASSERT_NE(heap, nullptr);
  void* other = allocate(100);
  for (size_t size : {size_t{0}, size_t{1}, size_t{100}, size_t{5000}, kMaxSmall, kMaxSmall + 1, kMiB}) {
    void* block = take(heap, size);
    ASSERT_NE(block, nullptr);
    EXPECT_GE(usable_size(block, "test"), size);
    EXPECT_EQ(shared::heap_of(find_block(block).span), heap);
    fill(block, size, 1);
  }
  EXPECT_EQ(shared::heap_of(find_block(other).span), nullptr);
  destroy_heap(heap);
}

TEST(Shared, DestroyingGivesAllBack) {
  for (int round = 0; round < 3; ++round) {
    Heap* heap = shared::create();
    for (size_t size = 1; size < kMiB; size += 1 + size / 4)
      for (int count = 0; count < 20; ++count) take(heap, size);
    EXPECT_GT(figures().in_use, 20 * kMiB / 2);
    destroy_heap(heap);
    EXPECT_EQ(figures().in_use, 0u);
    EXPECT_LE(figures().arena.in_use, SpanStore::kLeastBudget.bytes());
    idle::trim();
    EXPECT_EQ(figures().arena.in_use, 0u);
  }
  EXPECT_TRUE(registry::is_spare(registry::shared_heaps()));
}

TEST(Shared, HeapsAreUsedAgain) {
  size_t metadata = 0;
  for (int round = 0; round < 100; ++round) {
    Heap* a = shared::create();
    Heap* b = shared::create();
    take(a, 16), take(b, 16);
    destroy_heap(round % 2 ? a : b);
    destroy_heap(round % 2 ? b : a);
    if (round == 0) metadata = registry::metadata_bytes();
  }
  EXPECT_EQ(registry::metadata_bytes(), metadata);
}

TEST(Shared, BlocksAreFreedOneByOneFromAnyThread) {
  Heap* heap = shared::create();
  for (int round = 0; round < 5; ++round) {
    std::vector<void*> blocks;
    for (int count = 0; count < 5000; ++count) blocks.push_back(take(heap, 100));
    for (int count = 0; count < 20; ++count) blocks.push_back(take(heap, 100000));
    Actor other;
    for (size_t index = 0; index < blocks.size(); ++index)
      if (index % 2)
        deallocate(blocks[index]);
      else
        other([&] { deallocate(blocks[index]); });
    other.end();
    // Bins and a few empty slabs are kept.
    EXPECT_LE(figures().arena.in_use, 16 * kUnitSize);
  }
  destroy_heap(heap);
  EXPECT_EQ(figures().in_use, 0u);
}

TEST(Shared, ZeroedAndAligned) {
  Heap* heap = shared::create();
  for (int round = 0; round < 2; ++round) {
    std::vector<void*> blocks;
    for (size_t size : {size_t{24}, size_t{1000}, size_t{30000}, kMiB, 5 * kMiB}) {
      void* block = allocate_in(heap, kBlockAlign, size, true);
      ASSERT_TRUE(all_zero(block, size));
      std::memset(block, 0xee, size);
      blocks.push_back(block);
    }
    for (size_t alignment = 16; alignment <= kMiB; alignment *= 2) {
      void* block = allocate_in(heap, alignment, 100, false);
      ASSERT_EQ(address_of(block) % alignment, 0u);
      std::memset(block, 0xee, 100);
      blocks.push_back(block);
    }
    for (void* block : blocks) deallocate(block);
  }
  destroy_heap(heap);
}

TEST(Shared, TwoHeapsKeepApart) {
  Heap* a = shared::create();
  Heap* b = shared::create();
  std::vector<void*> kept;
  for (unsigned count = 0; count < 1000; ++count) {
    take(a, 64);
    kept.push_back(take(b, 64));
    fill(kept.back(), 64, count);
  }
  destroy_heap(a);
  for (int count = 0; count < 2000; ++count) std::memset(allocate(64), 0xff, 64);
  for (unsigned count = 0; count < kept.size(); ++count) ASSERT_TRUE(intact(kept[count], 64, count));
  destroy_heap(b);
}

TEST(Shared, OutOfMemoryIsNullAndPasses) {
  Heap* heap = shared::create();
  std::vector<void*> blocks;
  take(heap, 16);
  fake::limit_committed(fake::committed_bytes() + 2 * kMiB);
  while (void* block = take(heap, 3000)) blocks.push_back(block);
  EXPECT_EQ(take(heap, kMiB), nullptr);
  EXPECT_FALSE(blocks.empty());
  for (void* block : blocks) deallocate(block);
  EXPECT_NE(take(heap, 3000), nullptr);
  EXPECT_NE(take(heap, 100), nullptr);
  destroy_heap(heap);
}

TEST(Shared, MemoryFreeInThreadsHeapsIsCollectedWhenShort) {
  Heap* heap = shared::create();
  take(heap, 16);
  Actor a;
  a([] { allocate(16); });
  fake::limit_committed(fake::committed_bytes() + 8 * kMiB);
  std::vector<void*> blocks;
  while (void* block = a([] { return allocate(512); })) blocks.push_back(block);
  Actor b;
  b([&] {
    for (void* block : blocks) deallocate(block);  // to an inactive owner: some wait in its inbox
  });
  size_t served = 0;
  while (take(heap, 512) != nullptr) ++served;
  EXPECT_GT(served, blocks.size() * 9 / 10);
  destroy_heap(heap);
}

// Allocates blocks of all sizes and frees them again.
void use_and_free(Heap* heap) {
  std::vector<void*> blocks;
  for (int round = 0; round < 30; ++round)
    for (size_t size = 16; size <= kMaxSmall; size += size / 5) blocks.push_back(take(heap, size));
  for (void* block : blocks) deallocate(block);
}

TEST(Shared, WhatIsFreeIsTrimmed) {
  Heap* heap = shared::create();
  void* kept = take(heap, 16);
  use_and_free(heap);
  idle::trim();
  EXPECT_LE(figures().arena.in_use, 2 * kUnitSize);
  fill(kept, 16, 1);
  destroy_heap(heap);
}

TEST(Shared, WhatIsFreeGoesBackWhileAllSleep) {
  Heap* heap = shared::create();
  use_and_free(heap);
  ASSERT_TRUE(fake::helper_is_there());
  for (int step = 0; step < 100 && fake::step_helper(); ++step) continue;
  EXPECT_LE(figures().arena.in_use, kUnitSize);
  EXPECT_EQ(figures().in_use, 0u);
  destroy_heap(heap);
}

TEST(Shared, WhatIsFreeIsCollectedWhenShort) {
  Heap* heap = shared::create();
  use_and_free(heap);
  fake::limit_committed(fake::committed_bytes());
  fake::limit_reserved(fake::reserved_bytes());
  size_t most = figures().arena.in_use + g_arena.dirty_bytes();
  size_t got = 0;
  while (allocate(kMiB / 4) != nullptr) got += kMiB / 4;
  EXPECT_GE(got, most / 2);
  fake::limit_committed(SIZE_MAX);
  fake::limit_reserved(SIZE_MAX);
  destroy_heap(heap);
}

TEST(Shared, AHandleIsOfOneHeapAndOneLife) {
  Heap* heap = shared::create();
  uintptr_t handle = shared::handle_of(heap);
  EXPECT_EQ(shared::find(handle), heap);
  EXPECT_EQ(shared::find(address_of(heap)), nullptr);
  destroy_heap(heap);
  EXPECT_EQ(shared::find(handle), nullptr);
  Heap* next = shared::create();
  EXPECT_EQ(next, heap);
  EXPECT_EQ(shared::find(handle), nullptr);
  destroy_heap(next);
}

TEST(Shared, AWalkGoesOnWhereHeapsEnd) {
  // Of those that end, some are kept for the next to be made.
  std::vector<Heap*> heaps(200);
  for (Heap*& heap : heaps) heap = shared::create();
  for (size_t at = 0; at < 100; ++at) destroy_heap(heaps[at]);
  const std::vector<Heap*> live(heaps.rbegin(), heaps.rbegin() + 100);  // as they stand in the list
  const ThreadToken token = platform::thread_token();
  std::vector<Heap*> seen;
  {
    registry::Walk walk(token);
    while (Heap* heap = walk.next()) {
      EXPECT_TRUE(registry::lock().held_by(token));
      if (registry::is_spare(heap)) continue;
      seen.push_back(heap);
      if (seen.size() % 3 == 0) continue;
      EXPECT_TRUE(walk.stay());
      // As if another had done it meanwhile.
      registry::lock().release();
      destroy_heap(heap);
      registry::lock().acquire(token);
      EXPECT_FALSE(walk.stay());
    }
    EXPECT_TRUE(walk.is_whole());
  }
  EXPECT_FALSE(registry::lock().held_by(token));
  EXPECT_EQ(seen, live);
}

TEST(Shared, HeapsDestroyedLeaveNothing) {
  std::vector<Heap*> heaps;
  size_t before = registry::metadata_bytes();
  for (int count = 0; count < 1000; ++count) {
    heaps.push_back(shared::create());
    take(heaps.back(), 100);
  }
  EXPECT_GT(registry::metadata_bytes(), before);
  for (Heap* heap : heaps) destroy_heap(heap);
  // Some are kept for the next to be made.
  size_t spares = 0, kept = 0;
  for (Heap* heap = registry::shared_heaps(); heap != nullptr; heap = heap->next) spares += registry::is_spare(heap);
  for (Heap* heap : heaps) kept += !all_zero(heap, platform::kPageSize);
  EXPECT_EQ(kept, spares);
  EXPECT_GT(spares, 0u);
  EXPECT_LT(spares, 100u);
  EXPECT_EQ(registry::metadata_bytes(), before + spares * align_up(sizeof(Heap), platform::kPageSize));
  idle::trim();
  EXPECT_EQ(figures().arena.in_use, 0u);
}

// What a report says of the program's heaps is of those that it has: not of tags', nor of destroyed ones.
TEST(Shared, AreCountedWhileTheyLive) {
  Heap *kept = shared::create(), *gone = shared::create();
  for (Heap* heap : {kept, gone}) take(heap, kMiB);
  const tags::Tag tag = tags::create("not the program's");
  ASSERT_TRUE(tags::push(own_heap(), tag));
  allocate(100);
  tags::pop();
  ASSERT_NE(sampled::heap(), nullptr);
  destroy_heap(gone);
  EXPECT_EQ(stats::own_heaps().count, 1u);
  EXPECT_EQ(stats::own_heaps().held, kept->account.held());
  EXPECT_GE(kept->account.held(), kMiB);
  destroy_heap(kept);
  EXPECT_EQ(stats::own_heaps().count, 0u);
}

// Where one was destroyed the next one lies: a program that makes many all the time takes no more address space.
TEST(Shared, TheirMemoryIsUsedAgain) {
  size_t reserved = 0;
  for (int round = 0; round < 20; ++round) {
    std::vector<Heap*> heaps;
    for (int count = 0; count < 300; ++count) heaps.push_back(shared::create());
    if (round == 0) reserved = fake::reserved_bytes();
    for (Heap* heap : heaps) destroy_heap(heap);
  }
  EXPECT_EQ(fake::reserved_bytes(), reserved);
}

TEST(Shared, ManyThreadsAtTheSameTime) {
  Heap* heap = shared::create();
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 4; ++thread) {
    threads.emplace_back([heap, thread] {
      void* kept[32] = {};
      for (unsigned step = 0; step < 5000; ++step) {
        void*& slot = kept[step * 7 % 32];
        if (slot != nullptr) {
          ASSERT_TRUE(intact(slot, 40, thread));
          deallocate(slot);
        }
        slot = take(heap, 40 + step % 3 * 20000);
        fill(slot, 40, thread);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  destroy_heap(heap);
  idle::trim();
  EXPECT_EQ(figures().in_use, 0u);
}

std::vector<void*> walk(Heap* heap) {
  std::vector<void*> blocks;
  for (void* block = nullptr; (block = shared::next_block(heap, block)) != nullptr;) blocks.push_back(block);
  return blocks;
}

TEST(Shared, AWalkGivesTheLiveBlocksInTheOrderOfTheirAddresses) {
  if (!kExactSizes) GTEST_SKIP() << "this build does not keep notes";
  Heap* heap = shared::create();
  Heap* other = shared::create();
  EXPECT_TRUE(walk(heap).empty());
  std::vector<void*> live, freed;
  for (size_t count = 0; count < 4000; ++count) {
    size_t size = count % 50 == 0 ? 40000 + count : count % 700;
    (count % 3 == 0 ? freed : live).push_back(take(heap, size));
    take(other, size);
    allocate(size);
  }
  for (void* block : freed) deallocate(block);
  std::sort(live.begin(), live.end());
  EXPECT_EQ(walk(heap), live);
  shared::trim(heap);
  EXPECT_EQ(walk(heap), live);
  // A thread may free a block it was given.
  for (void* block = nullptr; (block = shared::next_block(heap, block)) != nullptr;) deallocate(block);
  EXPECT_TRUE(walk(heap).empty());
  destroy_heap(heap);
  destroy_heap(other);
}

TEST(Shared, TrimmedOfEverythingItHoldsNothing) {
  Heap* heap = shared::create();
  std::vector<void*> blocks;
  for (size_t size = 1; size < kMaxSmall; size += 300)
    for (int count = 0; count < 30; ++count) blocks.push_back(take(heap, size));
  for (void* block : blocks) deallocate(block);
  EXPECT_GT(figures().arena.in_use, 0u);
  shared::trim(heap);
  EXPECT_EQ(figures().arena.in_use, 0u);
  fill(take(heap, 1000), 1000, 1);
  destroy_heap(heap);
}

}  // namespace
}  // namespace rh
