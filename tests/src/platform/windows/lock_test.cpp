// The lock with this system's threads: under contention, and left behind by a thread that process exit has stopped.
#include "platform/lock.h"

#include <gtest/gtest.h>

#include "farewell.h"
#include "last_error.h"
#include "threads.h"

namespace rh {
namespace {

TEST(Lock, LetsOneInAtATime) {
  constexpr unsigned kThreads = 16, kRounds = 5000;
  static Lock lock(LockRank::heap);
  uint64_t sum = 0, inside = 0;  // not atomic: the lock orders them
  in_threads(kThreads, [&](unsigned) {
    for (unsigned round = 0; round < kRounds; ++round) {
      LockGuard guard(lock);
      EXPECT_EQ(++inside, 1u);
      ++sum;
      --inside;
    }
  });
  EXPECT_EQ(sum, uint64_t{kThreads} * kRounds);
  EXPECT_FALSE(inconsistent());
}

// Its holder sleeps: the waiting threads grow patient, and lose nothing by it.
TEST(Lock, IsWaitedForWhileItsHolderSleeps) {
  static Lock lock(LockRank::heap);
  lock.acquire();
  std::atomic<unsigned> waiting{0}, been_in{0};
  std::thread others([&] {
    in_threads(16, [&](unsigned) {
      ++waiting;
      KEEPING_LAST_ERROR(lock.acquire());
      ++been_in;
      lock.release();
    });
  });
  until([&] { return waiting == 16; });
  Sleep(50);
  EXPECT_EQ(been_in, 0u);
  lock.release();
  others.join();
  EXPECT_EQ(been_in, 16u);
  EXPECT_FALSE(inconsistent());
}

TEST(Lock, KnowsItsHolder) {
  static Lock lock(LockRank::heap);
  uint32_t token = platform::thread_token();
  EXPECT_FALSE(lock.held_by(token));
  lock.acquire();
  EXPECT_TRUE(lock.held_by(token));
  EXPECT_FALSE(lock.try_acquire());
  Obedient other;
  other.run([] {
    EXPECT_FALSE(lock.held_by(platform::thread_token()));
    EXPECT_FALSE(lock.try_acquire());
  });
  lock.release();
  EXPECT_FALSE(lock.held_by(token));
}

// ---- a thread that was terminated -----------------------------------------------------------------

Lock g_terminated_with(LockRank::heap), *g_put_in_order_with = nullptr;

DWORD WINAPI hold_for_ever(void*) {
  g_terminated_with.acquire();
  Sleep(INFINITE);
  return 0;
}

TEST(Lock, LeftByATerminatedThreadIsTakenFromIt) {
  g_put_in_order = [](Lock& lock) { g_put_in_order_with = &lock; };
  HANDLE holder = CreateThread(nullptr, 0, hold_for_ever, nullptr, 0, nullptr);
  until([] { return !g_terminated_with.held_by(0); });
  EXPECT_FALSE(platform::thread_is_gone(GetThreadId(holder)));
  TerminateThread(holder, 0);
  WaitForSingleObject(holder, INFINITE);
  EXPECT_TRUE(platform::thread_is_gone(GetThreadId(holder)));
  CloseHandle(holder);
  KEEPING_LAST_ERROR(g_terminated_with.acquire());
  EXPECT_TRUE(g_terminated_with.held_by(platform::thread_token()));
  EXPECT_EQ(g_put_in_order_with, &g_terminated_with);
  EXPECT_FALSE(inconsistent());
  g_put_in_order = nullptr;
}

// ---- the process's end --------------------------------------------------------------------------

constexpr int kTakenOver = 7, kFree = 8, kNotAtTheEnd = 9;

Lock g_left(LockRank::arena), g_free(LockRank::heap);

void say_goodbye() {
  if (!platform::others_are_gone()) platform::end_process(kNotAtTheEnd);
  g_free.acquire();
  if (inconsistent()) platform::end_process(kFree);
  g_left.acquire();
  bool taken_over = inconsistent() && g_left.held_by(platform::thread_token());
  platform::end_process(taken_over ? kTakenOver : kFree);
}

[[noreturn]] void end_beside_a_holder() {
  at_farewell(say_goodbye);
  std::thread([] {
    g_left.acquire();
    for (;;) Sleep(INFINITE);
  }).detach();
  until([] { return !g_left.held_by(0); });
  ExitProcess(0);
}

TEST(LockDeathTest, LeftByAStoppedThreadIsTakenOver) {
  EXPECT_EXIT(end_beside_a_holder(), testing::ExitedWithCode(kTakenOver), "");
}

}  // namespace
}  // namespace rh
