// First-class heaps bound to a thread, and what all first-class heaps have in common at their end.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "heap/idle.h"
#include "heap/registry.h"
#include "heap/shared.h"
#include "support/heaps.h"

namespace rh {
namespace {

void* take_from(Heap* heap, size_t size) { return allocate_in(heap, kBlockAlign, size, false); }

std::vector<void*> take_all_sizes(Heap* heap) {
  std::vector<void*> blocks;
  for (size_t size = 1; size < 2 * kMiB; size += 1 + size / 3)
    for (int count = 0; count < 10; ++count) {
      blocks.push_back(take_from(heap, size));
      fill(blocks.back(), size, size);
    }
  return blocks;
}

TEST(Bound, ServesAllSizesZeroedAndAligned) {
  Heap* heap = create_bound_heap();
  ASSERT_NE(heap, nullptr);
  for (int round = 0; round < 3; ++round) {
    std::vector<void*> blocks = take_all_sizes(heap);
    for (void* block : blocks) ASSERT_EQ(shared::heap_of(find_block(block).span), heap);
    for (size_t size : {size_t{24}, size_t{1000}, size_t{30000}, kMiB}) {
      blocks.push_back(allocate_in(heap, 256, size, true));
      ASSERT_TRUE(all_zero(blocks.back(), size));
      std::memset(blocks.back(), 0xee, size);
    }
    for (void* block : blocks) free_as_a_program_does(block);
  }
  registry::check_books();
  destroy_heap(heap);
}

TEST(Bound, ItsThreadTakesAndFreesWithoutTheLock) {
  Heap* heap = create_bound_heap();
  for (int count = 0; count < 10; ++count) take_from(heap, 64);
  LockGuard guard(heap->lock, kHelperToken);  // whoever waits for it now waits for ever
  for (int count = 0; count < 1000; ++count) {
    void* block = allocate_in_fast(heap, 64);
    if (count < 10) ASSERT_NE(block, nullptr);
    if (block == nullptr) break;
    ASSERT_TRUE(deallocate_otherwise(block));
  }
}

TEST(Bound, OthersFreeItsBlocks) {
  Heap* heap = create_bound_heap();
  Actor other;
  for (int round = 0; round < 5; ++round) {
    std::vector<void*> blocks;
    for (int count = 0; count < 20000; ++count) blocks.push_back(take_from(heap, 100));
    for (int count = 0; count < 20; ++count) blocks.push_back(take_from(heap, 100000));
    for (size_t index = 0; index < blocks.size(); ++index)
      if (index % 2)
        free_as_a_program_does(blocks[index]);
      else
        other([&] { free_as_a_program_does(blocks[index]); });
  }
  idle::trim();
  EXPECT_LE(figures().arena.in_use, 2 * kUnitSize);
  registry::check_books();
  destroy_heap(heap);
  EXPECT_EQ(figures().in_use, 0u);
}

// What another thread has freed does not lie with it when the heap is gone, and the memory another's.
TEST(Bound, NothingOfADestroyedHeapComesAfterIt) {
  Heap* heap = create_bound_heap();
  std::vector<void*> blocks;
  for (int count = 0; count < 100; ++count) blocks.push_back(take_from(heap, 64));
  Actor other;
  other([&] {
    for (int count = 0; count < 50; ++count) free_as_a_program_does(blocks[static_cast<size_t>(count)]);
  });
  for (const Outgoing& out : other.heap()->outgoing) EXPECT_TRUE(out.empty());
  destroy_heap(heap);
  std::vector<void*> later;
  for (unsigned count = 0; count < 1000; ++count) {
    later.push_back(allocate(64));
    fill(later.back(), 64, count);
  }
  other([] {
    void* block = allocate(64);
    idle::trim();
    deallocate(block);
  });
  for (unsigned count = 0; count < 1000; ++count) ASSERT_TRUE(intact(later[count], 64, count));
}

TEST(Bound, ResetKeepsTheHeapAndNothingElse) {
  for (Heap* heap : {shared::create(), create_bound_heap()}) {
    Actor other;
    for (int round = 0; round < 4; ++round) {
      std::vector<void*> blocks = take_all_sizes(heap);
      other([&] {
        for (size_t index = 0; index < blocks.size(); index += 7) free_as_a_program_does(blocks[index]);
      });
      EXPECT_GT(figures().in_use, kMiB);
      reset_heap(heap);
      EXPECT_EQ(figures().in_use, 0u);
      registry::check_books();
    }
    std::set<void*> live;
    for (int count = 0; count < 10000; ++count) ASSERT_TRUE(live.insert(take_from(heap, 64)).second);
    destroy_heap(heap);
  }
  EXPECT_EQ(figures().in_use, 0u);
}

TEST(Bound, WhatAResetGivesBackIsUsedForOthers) {
  Heap* heap = create_bound_heap();
  for (int count = 0; count < 100000; ++count) take_from(heap, 64);
  take_from(heap, 64);
  reset_heap(heap);
  EXPECT_LE(figures().arena.in_use, size_t{1} << 20);
  EXPECT_NE(allocate(8 * kMiB / 2), nullptr);  // of what came back together
  EXPECT_LE(figures().arena.committed, 12 * kMiB);
}

// A heap whose thread has ended is its next user's.
TEST(Bound, TheNextThreadTakesItUp) {
  Actor first;
  Heap* heap = first([] { return create_bound_heap(); });
  std::vector<void*> blocks = first([&] { return take_all_sizes(heap); });
  first.end();
  Actor next;
  next([&] {
    EXPECT_FALSE(is_mine(heap));
    free_as_a_program_does(blocks[0]);
    EXPECT_NE(take_from(heap, 64), nullptr);
    EXPECT_TRUE(is_mine(heap));
    for (size_t index = 1; index < blocks.size(); ++index) free_as_a_program_does(blocks[index]);
  });
  registry::check_books();
  destroy_heap(heap);
  EXPECT_EQ(figures().in_use, 0u);
}

// Who has its thread's heap now is not whom it was bound to.
TEST(Bound, AnAdoptedHeapBringsNoBoundOnes) {
  Actor first;
  Heap* heap = first([] { return create_bound_heap(); });
  first([&] { take_from(heap, 64); });
  first.end();
  Actor heir;
  heir([] { allocate(16); });
  ASSERT_EQ(heir.heap(), first.heap());
  heir([&] { EXPECT_FALSE(is_mine(heap)); });
  Actor user;
  user([&] {
    EXPECT_NE(take_from(heap, 64), nullptr);
    EXPECT_TRUE(is_mine(heap));
  });
  destroy_heap(heap);
}

TEST(BoundDeathTest, AnotherThreadMayNotAllocateWhileItsThreadLives) {
  Heap* heap = create_bound_heap();
  Actor other;
  for (size_t size : {size_t{64}, kMiB})
    EXPECT_DEATH(other([&] { take_from(heap, size); }), "which is bound to another thread");
}

// A destroyed heap is kept for the next, which is nobody's: any thread may allocate there, and takes the lock.
TEST(Bound, WhatComesAfterADestroyedOneIsBoundToNobody) {
  Heap* bound = create_bound_heap();
  take_from(bound, 100);
  destroy_heap(bound);
  Heap* next = shared::create();
  ASSERT_EQ(next, bound);
  EXPECT_FALSE(is_bound(next) || is_mine(next));
  Actor other;
  EXPECT_NE(other([&] { return take_from(next, 100); }), nullptr);
  destroy_heap(next);
}

// To ask whether the thread has ended is not to keep what it left.
TEST(Bound, WhoTakesOneUpLeavesItsThreadsHeapToOthers) {
  Actor dead, heir, born;
  Heap* heap = dead([] { return create_bound_heap(); });
  dead([&] { take_from(heap, 100); });
  heir([] { allocate(16); });
  dead.end();
  EXPECT_NE(heir([&] { return take_from(heap, 100); }), nullptr);
  born([] { allocate(16); });
  EXPECT_EQ(born.heap(), dead.heap());
}

// A thread that only frees what others take from such a heap does not make memory grow.
TEST(Bound, WhatOthersFreeIsBookedWhileItsThreadSleeps) {
  Heap* heap = create_bound_heap();
  std::vector<void*> blocks;
  for (int count = 0; count < 20000; ++count) blocks.push_back(take_from(heap, 512));
  Actor other;
  const size_t before = figures().in_use;
  const size_t frees = other([] { return own_heap()->remote_frees.value(); });
  other([&] { free_all(blocks); });
  EXPECT_LE(heap->waiting.load(), 2 * kMiB);
  EXPECT_LE(figures().in_use, before - 6 * kMiB);
  EXPECT_EQ(other.heap()->remote_frees.value(), frees + blocks.size());
  destroy_heap(heap);
}

TEST(BoundDeathTest, FreedTwiceByAnother) {
  Heap* heap = create_bound_heap();
  void* block = take_from(heap, 64);
  void* between = take_from(heap, 64);
  Actor other;
  EXPECT_DEATH(other([&] {
                 free_as_a_program_does(block);
                 free_as_a_program_does(block);
               }),
               "free of invalid pointer");
  EXPECT_DEATH(
      {
        other([&] {
          free_as_a_program_does(block);
          free_as_a_program_does(between);
          free_as_a_program_does(block);
        });
        for (int count = 0; count < 1000; ++count) take_from(heap, 64);
      },
      "free of");
}

TEST(BoundDeathTest, FreedAfterTheReset) {
  Heap* heap = create_bound_heap();
  void* block = take_from(heap, 64);
  reset_heap(heap);
  EXPECT_DEATH(free_as_a_program_does(block), "free of invalid pointer");
  Actor other;
  EXPECT_DEATH(other([&] { free_as_a_program_does(block); }), "free of invalid pointer");
}

TEST(Bound, DestroyedByAnyThread) {
  for (int round = 0; round < 3; ++round) {
    Actor maker, other;
    Heap* heap = maker([] { return create_bound_heap(); });
    maker([&] { take_all_sizes(heap); });
    if (round == 1) maker.end();
    other([&] { destroy_heap(heap); });
    EXPECT_EQ(figures().in_use, 0u);
  }
}

// The helper takes back what is free, but nothing that the thread may be taking at this moment.
TEST(Bound, WhatIsFreeGoesBackWhileItsThreadSleeps) {
  Heap* heap = create_bound_heap();
  std::vector<void*> blocks = take_all_sizes(heap);
  for (int count = 0; count < 10; ++count) take_from(heap, 48);
  for (void* block : blocks) free_as_a_program_does(block);
  Block* bin = heap->bins[size_class::of(48)];
  ASSERT_TRUE(fake::helper_is_there());
  for (int step = 0; step < 100 && fake::step_helper(); ++step) continue;
  EXPECT_EQ(heap->bins[size_class::of(48)], bin);
  EXPECT_LE(g_arena.dirty_bytes(), kMiB);
  registry::check_books();
  destroy_heap(heap);
}

TEST(Bound, OutOfMemoryIsNullAndPasses) {
  Heap* heap = create_bound_heap();
  std::vector<void*> blocks;
  take_from(heap, 16);
  fake::limit_committed(fake::committed_bytes() + 2 * kMiB);
  while (void* block = take_from(heap, 3000)) blocks.push_back(block);
  EXPECT_EQ(take_from(heap, kMiB), nullptr);
  for (void* block : blocks) free_as_a_program_does(block);
  EXPECT_NE(take_from(heap, 3000), nullptr);
  fake::limit_committed(SIZE_MAX);
  destroy_heap(heap);
}

TEST(Bound, ManyThreadsFreeWhatManyTake) {
  constexpr unsigned kThreads = 4;
  std::vector<std::atomic<void*>> slots(64);
  std::vector<Heap*> heaps(kThreads);
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      heaps[thread] = create_bound_heap();
      for (unsigned step = 0; step < 20000; ++step) {
        void* block = take_from(heaps[thread], 40 + step % 3 * 3000);
        fill(block, 40, 7);
        void* old = slots[step * 31 % 64].exchange(block);
        if (old == nullptr) continue;
        ASSERT_TRUE(intact(old, 40, 7));
        free_as_a_program_does(old);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::atomic<void*>& slot : slots) free_as_a_program_does(slot.load());
  for (Heap* heap : heaps) {
    EXPECT_NE(take_from(heap, 64), nullptr);  // its thread has ended
    destroy_heap(heap);
  }
  idle::trim();
  EXPECT_EQ(figures().in_use, 0u);
}

}  // namespace
}  // namespace rh
