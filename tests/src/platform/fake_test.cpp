// The fake itself: what it allows, and that it detects what it must.
#include "platform/fake/fake.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "platform/lock.h"
#include "platform/platform.h"
#include "support/pages.h"

namespace rh {
namespace {

using namespace platform;

constexpr size_t kSize = 16 * kPageSize;

TEST(Fake, MemoryReadsAsZeroAfterCommitAndPurge) {
  uintptr_t at = reserve(kSize, kPageSize);
  ASSERT_NE(at, 0u);
  ASSERT_TRUE(commit(at, kSize));
  EXPECT_TRUE(pages::are_zero(at, kSize));
  pages::mark(at, kSize, 1);
  ASSERT_EQ(purge(at, kPageSize), Purged::zero);
  EXPECT_TRUE(pages::are_zero(at, kPageSize));
  EXPECT_TRUE(pages::are_marked(at + kPageSize, kSize - kPageSize, 1));
  release(at, kSize);
  EXPECT_EQ(reserve(kSize, kPageSize), at);
  ASSERT_TRUE(commit(at, kSize));
  EXPECT_TRUE(pages::are_zero(at, kSize));
}

TEST(Fake, AlignmentsAreKept) {
  for (size_t alignment = kPageSize; alignment <= size_t{64} << 20; alignment *= 2) {
    uintptr_t at = reserve(kSize, alignment);
    ASSERT_NE(at, 0u);
    EXPECT_EQ(at % alignment, 0u);
  }
}

TEST(Fake, PagesMove) {
  uintptr_t at = reserve(2 * kSize, kPageSize);
  ASSERT_TRUE(commit(at, 2 * kSize));
  pages::mark(at, kSize, 1);
  std::string before(reinterpret_cast<char*>(at), kSize);
  ASSERT_EQ(move_pages(at, at + kSize, kSize), Moved::done);
  EXPECT_EQ(std::string(reinterpret_cast<char*>(at + kSize), kSize), before);
  EXPECT_NE(std::string(reinterpret_cast<char*>(at), kSize), before);
}

TEST(Fake, AMoveThatFailsMayTakeItsTargetAway) {
  uintptr_t at = reserve(2 * kSize, kPageSize);
  ASSERT_TRUE(commit(at, 2 * kSize));
  pages::mark(at, kSize, 1);
  std::string before(reinterpret_cast<char*>(at), kSize);
  fake::fail_nth(fake::Call::move, 1);
  EXPECT_EQ(move_pages(at, at + kSize, kSize), Moved::refused);
  fake::set_failed_moves_lose(true);
  fake::fail_nth(fake::Call::move, 1);
  EXPECT_EQ(move_pages(at, at + kSize, kSize), Moved::lost);
  EXPECT_EQ(std::string(reinterpret_cast<char*>(at), kSize), before);
  EXPECT_FALSE(fake::is_committed(at + kSize, kSize));
}

TEST(Fake, APurgeThatFailsSpoils) {
  uintptr_t at = reserve(kSize, kPageSize);
  ASSERT_TRUE(commit(at, kSize));
  fake::fail_nth(fake::Call::purge, 2);
  EXPECT_EQ(purge(at, kSize), Purged::zero);
  EXPECT_EQ(purge(at, kSize), Purged::kept);
  EXPECT_FALSE(pages::are_zero(at, kPageSize));
  EXPECT_EQ(purge(at, kSize), Purged::zero);
  EXPECT_EQ(fake::calls(fake::Call::purge), 3u);
}

// Like madvise: from the beginning, up to the first locked page.
TEST(Fake, APurgeEndsAtLockedPages) {
  uintptr_t at = reserve(kSize, kPageSize);
  ASSERT_TRUE(commit(at, kSize));
  fake::lock_pages(at + 2 * kPageSize, kPageSize);
  for (bool purges : {true, false}) {
    pages::mark(at, kSize, 1);
    EXPECT_FALSE(purges ? purge(at, kSize) == Purged::zero : replace_by_zeros(at, kSize));
    EXPECT_TRUE(pages::are_zero(at, 2 * kPageSize));
    EXPECT_TRUE(pages::are_marked(at + 2 * kPageSize, kSize - 2 * kPageSize, 1));
  }
  EXPECT_EQ(purge(at, 2 * kPageSize), Purged::zero);
  EXPECT_EQ(purge(at + 3 * kPageSize, kPageSize), Purged::zero);
  fake::unlock_pages(at, kSize);
  EXPECT_EQ(purge(at, kSize), Purged::zero);
  EXPECT_TRUE(pages::are_zero(at, kSize));
}

TEST(Fake, WherePurgesUncommitTheyUnlock) {
  uintptr_t at = reserve(kSize, kPageSize);
  ASSERT_TRUE(commit(at, kSize));
  fake::set_purge_uncommits(true);
  fake::lock_pages(at, kPageSize);
  EXPECT_EQ(purge(at, kSize), Purged::uncommitted);
  fake::set_purge_uncommits(false);
  ASSERT_TRUE(commit(at, kSize));
  EXPECT_EQ(purge(at, kSize), Purged::zero);
}

TEST(Fake, OccupiedAndRefusedAreToldApart) {
  uintptr_t at = reserve(kSize, kPageSize);
  EXPECT_EQ(reserve_at(at, kPageSize), Reserve::occupied);
  release(at, kSize);
  EXPECT_EQ(reserve_at(at, kPageSize), Reserve::done);
  fake::occupy(at - kPageSize, kPageSize);
  EXPECT_EQ(reserve_at(at - kPageSize, kPageSize), Reserve::occupied);
  fake::limit_reserved(fake::reserved_bytes());
  EXPECT_EQ(reserve_at(at + kPageSize, kPageSize), Reserve::refused);
  EXPECT_EQ(reserve(kPageSize, kPageSize), 0u);
}

TEST(Fake, CommitsToItsLimit) {
  uintptr_t at = reserve(kSize, kPageSize);
  fake::limit_committed(2 * kPageSize);
  EXPECT_FALSE(commit(at, 3 * kPageSize));
  EXPECT_TRUE(commit(at, 2 * kPageSize));
  EXPECT_FALSE(commit(at + 2 * kPageSize, kPageSize));
  EXPECT_FALSE(fake::is_committed(at, 3 * kPageSize));
  EXPECT_EQ(fake::committed_bytes(), 2 * kPageSize);
}

class FakeDeath : public testing::Test {};

TEST_F(FakeDeath, CommitOutsideAReservation) {
  uintptr_t at = reserve(kSize, kPageSize);
  EXPECT_DEATH(commit(at, kSize + kPageSize), "commit of what is not reserved");
}

TEST_F(FakeDeath, PurgeOfWhatIsNotCommitted) {
  uintptr_t at = reserve(kSize, kPageSize);
  commit(at, kPageSize);
  EXPECT_DEATH(purge(at, 2 * kPageSize), "purge of what is not committed");
}

TEST_F(FakeDeath, MoveOfWhatIsNotCommitted) {
  uintptr_t at = reserve(kSize, kPageSize);
  commit(at, kPageSize);
  EXPECT_DEATH(move_pages(at, at + kPageSize, kPageSize), "move to what is not committed");
}

TEST_F(FakeDeath, PartOfAReservationReleased) {
  uintptr_t at = reserve(kSize, kPageSize);
  EXPECT_DEATH(release(at, kPageSize), "release of what is no whole reservation");
}

TEST_F(FakeDeath, PartsOfPages) {
  uintptr_t at = reserve(kSize, kPageSize);
  EXPECT_DEATH(commit(at, kPageSize + 1), "commit of what is not whole pages");
  EXPECT_DEATH(commit(at + 16, kPageSize), "commit of what is not whole pages");
  EXPECT_DEATH(commit(at, 0), "commit of what is not whole pages");
}

TEST_F(FakeDeath, WritingToWhatIsNotCommitted) {
  uintptr_t at = reserve(kSize, kPageSize);
  EXPECT_DEATH(*reinterpret_cast<volatile int*>(at) = 1, "");
}

// ---- threads ------------------------------------------------------------------------------------

TEST(Fake, ThreadsHaveTokensOfTheirOwn) {
  uint32_t here = thread_token(), there = 0;
  std::thread([&] { there = thread_token(); }).join();
  EXPECT_NE(here, there);
  for (uint32_t token : {here, there}) {
    EXPECT_NE(token, 0u);
    EXPECT_NE(token, kHelperToken);
  }
}

TEST(Fake, OwnershipPassesOnWhenARealThreadEnds) {
  Ownership ownership;
  ownership.reset();
  std::thread([&] { EXPECT_TRUE(ownership.try_acquire()); }).join();
  EXPECT_TRUE(ownership.try_acquire());
  std::thread([&] { EXPECT_FALSE(ownership.try_acquire()); }).join();
  ownership.release();
  std::thread([&] { EXPECT_TRUE(ownership.try_acquire()); }).join();
}

TEST(Fake, OwnershipPassesOnWhenAPlayedThreadEnds) {
  Ownership ownership;
  ownership.reset();
  uint32_t thread = fake::make_thread();
  uint32_t self = fake::become(thread);
  EXPECT_TRUE(ownership.try_acquire());
  EXPECT_EQ(fake::become(self), thread);
  EXPECT_FALSE(ownership.try_acquire());
  fake::end_thread(thread);
  EXPECT_TRUE(ownership.try_acquire());
}

TEST(Fake, TheHelperRunsInSteps) {
  static int rounds = 0;
  auto main = [] {
    std::atomic<uint32_t> never{0};
    for (int round = 0; round < 3; ++round) {
      wait(never, 0, 100);
      ++rounds;
    }
  };
  auto always = [] { return true; };
  EXPECT_FALSE(fake::step_helper());
  EXPECT_FALSE(start_helper(main, [] { return false; }));
  fake::fail_nth(fake::Call::start_helper, 1);
  EXPECT_FALSE(start_helper(main, always));
  EXPECT_TRUE(start_helper(main, always));
  EXPECT_FALSE(start_helper(main, always));  // there is one already
  uint64_t begin = now_ms();
  EXPECT_TRUE(fake::step_helper());
  EXPECT_EQ(rounds, 1);
  EXPECT_EQ(now_ms(), begin + 100);
  EXPECT_TRUE(fake::step_helper());
  EXPECT_FALSE(fake::step_helper());
  EXPECT_EQ(rounds, 3);
  EXPECT_FALSE(fake::helper_is_there());
}

TEST(Lock, ExcludesThreads) {
  Lock lock(LockRank::heap);
  size_t count = 0;
  auto work = [&] {
    for (int round = 0; round < 20000; ++round) {
      LockGuard guard(lock);
      ++count;
    }
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(count, 40000u);
}

TEST(Lock, KnowsItsHolder) {
  Lock lock(LockRank::heap);
  EXPECT_TRUE(lock.try_acquire(5));
  EXPECT_TRUE(lock.held_by(5));
  EXPECT_FALSE(lock.held_by(6));
  EXPECT_FALSE(lock.try_acquire(6));
  lock.release();
  EXPECT_FALSE(lock.held_by(5));
  EXPECT_TRUE(lock.try_acquire(6));
}

// ---- the order of locks, which debug builds check -----------------------------------------------

Lock g_registry(LockRank::registry), g_heap(LockRank::heap), g_another_heap(LockRank::heap);
Lock g_arena_lock(LockRank::arena);

TEST(LockOrder, IsFromLowRanksToHighOnes) {
  LockGuard registry(g_registry);
  for (int round = 0; round < 2; ++round) {
    LockGuard heap(g_heap);
    LockGuard arena(g_arena_lock);
  }
  LockGuard arena(g_arena_lock);
}

TEST(LockOrder, EveryLockMayBeTriedFor) {
  LockGuard arena(g_arena_lock);
  ASSERT_TRUE(g_another_heap.try_acquire());
  ASSERT_TRUE(g_registry.acquire_within(0, platform::thread_token()));
  g_registry.release();
  g_another_heap.release();
}

TEST(LockOrder, IsOfEachThreadByItself) {
  LockGuard arena(g_arena_lock);
  std::thread([] { LockGuard heap(g_heap); }).join();
}

TEST(LockOrderDeathTest, AWrongOneIsReported) {
  if (!kDebugChecks) GTEST_SKIP() << "release builds check nothing";
  LockGuard arena(g_arena_lock);
  EXPECT_DEATH(g_heap.acquire(), "holds a lock of rank arena waits for one of rank heap");
  std::thread([] {
    ASSERT_TRUE(g_heap.try_acquire());
    EXPECT_DEATH(g_another_heap.acquire(), "holds a lock of rank heap waits for one of rank heap");
    g_heap.release();
    g_another_heap.acquire();  // what was let go is not held
    g_another_heap.release();
  }).join();
}

TEST(LockOrderDeathTest, WhatWasTriedForIsHeldToo) {
  if (!kDebugChecks) GTEST_SKIP() << "release builds check nothing";
  ASSERT_TRUE(g_another_heap.try_acquire());
  EXPECT_DEATH(g_registry.acquire(), "holds a lock of rank heap waits for one of rank registry");
  g_another_heap.release();
}

TEST(Stacks, AreWhatTheTestSays) {
  uintptr_t frames[kMostFrames] = {};
  EXPECT_EQ(stack(frames, kMostFrames), 0u);
  const uintptr_t said[] = {0x1000, 0x2000, 0x3000};
  fake::set_stack(said, 3);
  EXPECT_EQ(stack(frames, 2), 2u);
  EXPECT_EQ(frames[1], 0x2000u);
  EXPECT_EQ(frames[2], 0u);
  EXPECT_EQ(stack(frames, kMostFrames), 3u);
  EXPECT_EQ(frames[2], 0x3000u);
}

TEST(OsCalls, AreCountedByKind) {
  size_t before = os_calls(OsCall::reserve);
  uintptr_t at = reserve(kSize, kPageSize);
  EXPECT_EQ(os_calls(OsCall::reserve), before + 1);
  release(at, kSize);
  EXPECT_EQ(os_calls(OsCall::release), 1u);
  EXPECT_STREQ(os_call_name(OsCall::reserve), "reserve");
  EXPECT_STREQ(os_call_name(OsCall::wake), "wake");
}

}  // namespace
}  // namespace rh
