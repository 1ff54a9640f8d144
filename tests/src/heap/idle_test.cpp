// Memory returns to the OS in time.
#include "base/bits.h"
#include "heap/idle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "heap/shared.h"
#include "support/heaps.h"

namespace rh {
namespace {

size_t dirty() { return g_arena.dirty_bytes(); }
size_t exactly_dirty() { return g_arena.figures().dirty; }

TEST(Idle, WhatIsLittleNeedsNoHelper) {
  free_all(used_blocks(16 * 1024, 128 * 1024));
  EXPECT_FALSE(fake::helper_is_there());
}

// Threads that only allocate have one made where much is held back, and then take the short way.
TEST(Idle, WhoAllocatesSeesToItThatThereIsAHelper) {
  deallocate(allocate(100));
  EXPECT_FALSE(idle::is_needed());
  retained::add(64 * kMiB);
  EXPECT_TRUE(idle::is_needed());
  std::vector<void*> blocks;
  while (blocks.size() < 1000) blocks.push_back(allocate(100));
  EXPECT_TRUE(fake::helper_is_there());
  EXPECT_TRUE(retained::is_much());
  EXPECT_FALSE(idle::is_needed());
  retained::subtract(64 * kMiB);
  free_all(blocks);
}

// What threads that met at the arena keep goes back while they work on without it.
TEST(Idle, AWorkingThreadKeepsNoStoreItDoesNotUse) {
  Actor one, other;
  std::vector<void*> ones, others;
  const Heap* heap = nullptr;
  one([&] { heap = own_heap(); });
  for (int round = 0; round < 400; ++round) {
    one([&] { ones.push_back(allocate(140000)); });
    other([&] { others.push_back(allocate(140000)); });
  }
  std::vector<void*> rest(ones.begin() + 200, ones.end());
  ones.resize(200);
  for (int round = 0; round < 200; ++round) {
    one([&] { deallocate(ones[static_cast<size_t>(round)]); });
    other([&] { deallocate(others[static_cast<size_t>(round)]); });
  }
  ASSERT_GT(heap->store.total(), SpanStore::kLeastBudget);
  auto work = [] {
    for (int round = 0; round < 20; ++round) free_all(used_blocks(64, 8000));
  };
  one(work);
  for (int look = 0; look < 20; ++look) {
    one(work);
    step_for(100);
  }
  EXPECT_EQ(heap->store.total(), Units{});
}

// Frees 64 MiB in pieces too short for what is asked for below, and gives what lies between them.
std::vector<void*> free_apart() {
  std::vector<void*> pieces, between;
  for (int count = 0; count < 16; ++count) {
    pieces.push_back(allocate(4 * kMiB));
    between.push_back(allocate(kMiB + kUnitSize));
  }
  free_all(pieces);
  return between;
}

// Free in the wrong places, so that more is held than was ever in use. 4 MiB go at once.
TEST(Idle, WhatIsBeyondThePeakIsLeftToTheHelper) {
  fake::set_clock(10000);
  std::vector<void*> kept = free_apart();
  kept.push_back(allocate(16 * kMiB));
  ASSERT_TRUE(fake::helper_is_there());
  size_t purges = fake::calls(fake::Call::purge);
  kept.push_back(allocate(20 * kMiB));
  fake::advance(100);
  kept.push_back(allocate(9 * kMiB));
  EXPECT_EQ(fake::calls(fake::Call::purge), purges) << "who allocates purges nothing";
  EXPECT_GE(exactly_dirty(), 63 * kMiB);
  step_for(1);
  EXPECT_LE(exactly_dirty(), 60 * kMiB);
  EXPECT_GE(exactly_dirty(), 56 * kMiB);
  free_all(kept);
}

// It is asked for with each block that is taken, until the helper comes to it: what it returns is asked for once.
TEST(Idle, WhatIsFarBeyondThePeakIsLeftToTheHelperOnce) {
  fake::set_clock(10000);
  std::vector<void*> kept = free_apart();
  ASSERT_TRUE(fake::helper_is_there());
  const size_t peak = g_arena.figures().in_use_peak, most = peak + peak / 2;
  kept.push_back(allocate(60 * kMiB));
  const size_t dirty = exactly_dirty(), excess = g_arena.figures().in_use + dirty - most;
  ASSERT_GT(excess, 16 * kMiB);
  for (int count = 0; count < 8; ++count) kept.push_back(allocate(64 * 1024));
  step_for(1);
  EXPECT_GE(exactly_dirty() + kMiB, dirty - excess) << "in excess of what is too much";
  EXPECT_LE(exactly_dirty(), dirty - excess + kMiB);
  free_all(kept);
}

class Returned : public testing::TestWithParam<size_t> {};

// At rest, within one and a quarter decay times, from blocks of any size.
TEST_P(Returned, NineTenthsWithinTheDecay) {
  idle::set_decay_ms(1000);
  std::vector<void*> blocks = used_blocks(GetParam(), 64 * kMiB);
  free_all(blocks);
  ASSERT_TRUE(fake::helper_is_there());
  EXPECT_GE(dirty(), 50 * kMiB);
  step_for(700);
  EXPECT_GE(dirty(), 50 * kMiB) << "not before its time";
  step_for(500);
  EXPECT_GE(figures().arena.returned, 58 * kMiB);
  EXPECT_LE(dirty() + figures().arena.in_use, 64 * kMiB / 10);
  // It ends when there is nothing left to do.
  step_for(10000);
  EXPECT_FALSE(fake::helper_is_there());
}

INSTANTIATE_TEST_SUITE_P(Sizes, Returned,
                         testing::Values(size_t{64}, size_t{1024}, size_t{20000}, size_t{100000}, 8 * kMiB));

// It may be taken again. When nothing is taken any more it goes as always.
TEST(Idle, ItStaysLongerWhileSpansAreTaken) {
  constexpr size_t kMade = 32 * kMiB, kTaken = 3 * kMiB;
  idle::set_decay_ms(1000);
  auto work_for = [](int looks) {
    for (int look = 0; look < looks; ++look) {
      deallocate(allocate(kTaken));  // between the others nothing is so long
      step_for(250);
    }
  };
  std::vector<void*> blocks = used_blocks(kMiB, 2 * kMade), kept;
  std::vector<void*> others = used_blocks(kMiB, kMade);  // or less would stay warm
  for (size_t index = 0; index < blocks.size(); index += 2) {
    deallocate(blocks[index]);
    kept.push_back(blocks[index + 1]);
  }
  work_for(14);
  EXPECT_GE(dirty(), kMade - kTaken) << "all but what is beyond the peak";
  work_for(4);
  EXPECT_LE(dirty(), kTaken + kMiB) << "after four times the decay";
  free_all(kept);
  work_for(2);
  step_for(700);
  EXPECT_GE(dirty(), kMade);
  step_for(500);
  EXPECT_LE(dirty(), kMiB) << "the last span was taken a decay time ago";
  free_all(others);
}

TEST(Idle, WhatASleepingThreadWasSentGoesBackToo) {
  idle::set_decay_ms(400);
  Actor a, b;
  std::vector<void*> blocks = a([] { return used_blocks(3000, 8 * kMiB); });
  b([&] { free_all(blocks); });
  step_for(1200);
  EXPECT_LE(figures().arena.in_use, 8 * kMiB / 10);
  EXPECT_LE(dirty(), 8 * kMiB / 10);
}

class Sleepers : public testing::TestWithParam<int> {};

// Threads that used each class once, or now and then, and sleep: nobody frees any longer.
TEST_P(Sleepers, HoldLittleOfTheClassesTheyUsed) {
  constexpr size_t kThreads = 64;
  constexpr size_t kLeast = 4096 + 1;  // from this size on, freeing all blocks empties the slabs
  Actor sleepers[kThreads];
  for (Actor& sleeper : sleepers) {
    sleeper([] {
      for (size_t size = kLeast; size <= kMaxSmall; size += size / 9)
        for (int use = 0; use < GetParam(); ++use) deallocate(allocate(size));
    });
  }
  step_for(10000);
  EXPECT_FALSE(fake::helper_is_there());
  EXPECT_LE((figures().arena.in_use + dirty()) / kThreads, 128 * 1024u);
}

INSTANTIATE_TEST_SUITE_P(Uses, Sleepers, testing::Values(1, 2, 20, 21));

TEST(Idle, WhoUsedAClassOnceHoldsNothingOfIt) {
  constexpr size_t kThreads = 64;
  Actor sleepers[kThreads];
  for (Actor& sleeper : sleepers) {
    sleeper([] {
      for (size_t index = 0; index < size_class::kCount; ++index) {
        size_t size = size_class::size_of(index);
        void* block = allocate(size);
        std::memset(block, 1, size);
        deallocate(block);
      }
    });
  }
  EXPECT_LE(figures().arena.in_use / kThreads, SpanStore::kLeastBudget.bytes());
  EXPECT_EQ(figures().in_use, 0u);
}

class UsedOnce : public testing::TestWithParam<size_t> {};

// This many blocks of each class, all of them freed: bins keep none of the blocks refilled along with them.
TEST_P(UsedOnce, NothingIsHeld) {
  constexpr size_t kThreads = 200;
  Actor sleepers[kThreads];
  for (Actor& sleeper : sleepers) {
    sleeper([] {
      for (size_t index = 0; index < size_class::kCount; ++index) {
        const size_t size = size_class::size_of(index);
        if (size_class::of(size) != index) continue;  // whole pages are given to who asks for their alignment
        std::vector<void*> blocks;
        for (size_t count = 0; count < GetParam(); ++count) blocks.push_back(allocate(size));
        if (index % 2) std::reverse(blocks.begin(), blocks.end());
        free_all(blocks);
      }
    });
  }
  EXPECT_EQ(figures().in_use, 0u);
  step_for(10000);
  EXPECT_LE((figures().arena.in_use + dirty()) / kThreads, 16 * 1024u);
}

INSTANTIATE_TEST_SUITE_P(Blocks, UsedOnce, testing::Values(1, 2, 3, 5, 20));

TEST(Idle, WhatWaitsForManySleepingThreadsGoesBack) {
  constexpr size_t kThreads = 64, kSent = 400 * 1024;
  Actor sleepers[kThreads], senders[kThreads];
  for (size_t at = 0; at < kThreads; ++at) {
    std::vector<void*> blocks = sleepers[at]([] { return used_blocks(1000, kSent); });
    senders[at]([&] { free_all(blocks); });
  }
  step_for(10000);
  EXPECT_LE(figures().arena.in_use + dirty(), 8 * kMiB);
}

// All except what a block in use pins: other threads can empty the bins of such a heap.
TEST(Idle, WhatIsFreeInAFirstClassHeapGoesBack) {
  Heap* heap = shared::create();
  void* kept = allocate_in(heap, kBlockAlign, 16, false);
  for (int round = 0; round < 2; ++round) {
    for (size_t size = 16; size <= kMaxSmall / 2; size += 1 + size / 9) {
      for (int use = 0; use < 20; ++use) {
        std::vector<void*> blocks;
        for (int count = 0; count < 8; ++count) blocks.push_back(allocate_in(heap, kBlockAlign, size, false));
        free_all(blocks);
      }
    }
    ASSERT_GE(figures().arena.in_use, kMiB);
    ASSERT_LT(dirty(), 512 * 1024u) << "this alone would bring the helper";
    step_for(10000);
    EXPECT_LE(figures().arena.in_use + dirty(), 64 * 1024u);
    EXPECT_FALSE(fake::helper_is_there());
  }
  deallocate(kept);
  destroy_heap(heap);
}

// A sleeping thread has no use for what its dirty slabs have not carved yet.
TEST(Idle, WhatIsNotCarvedIsReturned) {
  std::vector<void*> before = used_blocks(1000, kMiB);
  free_all(before);
  std::vector<void*> kept;
  for (int count = 0; count < 8; ++count) kept.push_back(allocate(100));
  Span* slab = slab_of(kept.back());
  ASSERT_FALSE(slab->zero);
  step_for(10000);
  ASSERT_TRUE(slab->zero);
  for (int count = 0; count < 300; ++count) {
    void* zeroed = allocate_zeroed(100);
    ASSERT_TRUE(all_zero(zeroed, 100));
    fill(zeroed, 100, 1);
  }
}

TEST(Idle, MemoryInUseIsLeftAlone) {
  idle::set_decay_ms(100);
  std::vector<void*> kept = used_blocks(1000, kMiB);
  std::vector<void*> blocks = used_blocks(100000, 4 * kMiB);
  free_all(blocks);
  step_for(1000);
  for (void* block : kept)
    for (size_t index = 0; index < 1000; ++index) ASSERT_EQ(static_cast<char*>(block)[index], 1);
  EXPECT_GE(figures().in_use, kMiB);
}

TEST(Idle, ANewHelperComesWhenThereIsWorkAgain) {
  idle::set_decay_ms(100);
  for (int round = 0; round < 3; ++round) {
    free_all(used_blocks(100000, 4 * kMiB));
    ASSERT_TRUE(fake::helper_is_there());
    step_for(5000);
    ASSERT_FALSE(fake::helper_is_there());
    ASSERT_LT(dirty(), 512 * 1024u);
  }
}

TEST(Idle, NoHelperIsThereWhileNoneIsWanted) {
  free_all(used_blocks(1000, 8 * kMiB));
  fake::step_helper();
  {
    idle::WithoutHelper alone;
    EXPECT_FALSE(fake::helper_is_there());
    free_all(used_blocks(1000, 8 * kMiB));
    EXPECT_FALSE(fake::helper_is_there());
    fake::advance(1000);
  }
  free_all(used_blocks(1000, 8 * kMiB));
  EXPECT_TRUE(fake::helper_is_there());
}

// To see whether the helper still lives does not put off the start of the next.
TEST(Idle, ANewHelperComesRightAfterALookForTheLast) {
  for (int round = 0; round < 3; ++round) {
    free_all(used_blocks(1000, 8 * kMiB));
    EXPECT_TRUE(fake::step_helper());
    free_all(used_blocks(1000, 8 * kMiB));
    { idle::WithoutHelper alone; }
    ASSERT_FALSE(fake::helper_is_there());
  }
}

// The helper may be waiting for the thread that the handler has interrupted there.
// Nobody frees afterwards who would see to it.
TEST(Idle, WhatAHeapHadThatEndsGoesBack) {
  for (void (*end)(Heap*) : {destroy_heap, reset_heap}) {
    Heap* heap = shared::create();
    for (int count = 0; count < 8; ++count) allocate_in(heap, kBlockAlign, kMiB, false);
    end(heap);
    EXPECT_TRUE(fake::helper_is_there());
    step_for(10000);
    EXPECT_LE(dirty(), 64 * 1024u);
  }
}

// A signal handler that waits may have interrupted its thread within the arena.
TEST(Idle, AHandlerWithinTheArenaReturnsNothingBeforeItWaits) {
  fake::set_single_threaded(true);
  idle::let_waits_return();
  free_all(used_blocks(1000, 8 * kMiB));
  const size_t before = dirty();
  {
    LockGuard guard(g_arena.lock());
    EXPECT_FALSE(idle::returns_before_waiting());
    EXPECT_FALSE(idle::return_while_waiting());
  }
  EXPECT_EQ(dirty(), before);
  EXPECT_TRUE(idle::returns_before_waiting());
  while (idle::return_while_waiting()) continue;
  EXPECT_EQ(dirty(), 0u);
}

TEST(Idle, AHandlerWithinTheArenaDoesNotWaitForTheHelper) {
  free_all(used_blocks(1000, 8 * kMiB));
  fake::step_helper();
  g_arena.lock().acquire();
  { idle::WithoutHelper alone; }
  EXPECT_TRUE(fake::helper_is_there());
  g_arena.lock().release();
  EXPECT_FALSE(fake::step_helper()) << "it ends all the same";
  free_all(used_blocks(1000, 8 * kMiB));
  EXPECT_TRUE(fake::step_helper()) << "and the next does not";
}

TEST(Idle, WithoutAHelperThreadsThatFreeDoItsWork) {
  idle::set_decay_ms(100);
  fake::fail_all(fake::Call::start_helper, true);
  free_all(used_blocks(100000, 8 * kMiB));
  EXPECT_FALSE(fake::helper_is_there());
  for (int round = 0; round < 10; ++round) {
    fake::advance(50);
    free_all(used_blocks(40000, 1));
  }
  EXPECT_LE(dirty(), kMiB);
}

// Everything is freed at once, and then the program does nothing more.
TEST(Idle, WithoutAHelperLittleStaysFromTheStart) {
  fake::fail_all(fake::Call::start_helper, true);
  std::vector<void*> others = used_blocks(100000, 16 * kMiB);  // or less would stay warm
  free_all(used_blocks(100000, 256 * kMiB));
  EXPECT_LE(dirty(), 16 * kMiB);
  // Memory in constant use stays dirty.
  size_t before = figures().arena.returned;
  for (int round = 0; round < 100; ++round) free_all(used_blocks(kMiB, kMiB));
  EXPECT_EQ(figures().arena.returned, before);
  free_all(others);
}

TEST(Idle, DecayZeroReturnsAtOnce) {
  idle::set_decay_ms(0);
  free_all(used_blocks(100000, 4 * kMiB));
  EXPECT_EQ(dirty(), 0u);
}

TEST(Idle, TrimGivesWhatItReturned) {
  free_all(used_blocks(3000, 4 * kMiB));
  size_t before = figures().arena.returned;
  size_t bytes = idle::trim();
  EXPECT_GE(bytes, 4 * kMiB - kMiB / 4);
  EXPECT_EQ(figures().arena.returned, before + bytes);
  EXPECT_EQ(idle::trim(), 0u);
  EXPECT_EQ(dirty(), 0u);
}

TEST(Idle, TrimWhereTheOsTakesNothing) {
  free_all(used_blocks(3000, 4 * kMiB));
  fake::fail_all(fake::Call::purge, true);
  EXPECT_EQ(idle::trim(), 0u);
  fake::fail_all(fake::Call::purge, false);
  EXPECT_GT(idle::trim(), 0u);
}

}  // namespace
}  // namespace rh
