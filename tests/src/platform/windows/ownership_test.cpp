// Ownership passes on however its thread ends, and to one thread only.
#include <gtest/gtest.h>

#include <memory>

#include "last_error.h"
#include "platform/platform.h"
#include "threads.h"

namespace rh {
namespace {

using namespace platform;

bool acquired_by(Obedient& thread, Ownership& own) {
  bool acquired = false;
  thread.run([&] { acquired = own.try_acquire(); });
  return acquired;
}

class OwnershipTest : public testing::Test {
 protected:
  OwnershipTest() { own.reset(); }
  ~OwnershipTest() override { own.drop(); }

  Ownership own;
};

TEST_F(OwnershipTest, IsAcquiredOnce) {
  EXPECT_TRUE(KEEPING_LAST_ERROR(own.try_acquire()));
  EXPECT_FALSE(KEEPING_LAST_ERROR(own.try_acquire()));
}

TEST_F(OwnershipTest, IsKeptFromOthersWhileItsThreadLives) {
  ASSERT_TRUE(own.try_acquire());
  Obedient other;
  for (int round = 0; round < 3; ++round) {
    EXPECT_FALSE(acquired_by(other, own));
    note_thread_end();  // the kernel is asked again, with the same answer
    EXPECT_FALSE(acquired_by(other, own));
  }
}

TEST_F(OwnershipTest, ReleasedIsAcquiredByWhoComesNext) {
  Obedient other;
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(own.try_acquire());
    KEEPING_LAST_ERROR(own.release());
    ASSERT_TRUE(acquired_by(other, own));
    EXPECT_FALSE(own.try_acquire());
    other.run([&] { own.release(); });
  }
}

// ---- threads that end ---------------------------------------------------------------------------

struct Acquirer {
  Ownership* own;
  std::atomic<bool> acquired{false}, may_end{false};
};

DWORD WINAPI returns(void* context) {
  auto* acquirer = static_cast<Acquirer*>(context);
  acquirer->acquired = acquirer->own->try_acquire();
  until([&] { return acquirer->may_end.load(); });
  return 0;
}

DWORD WINAPI exits(void* context) {
  returns(context);
  ExitThread(0);
}

DWORD WINAPI is_terminated(void* context) {
  returns(context);
  for (;;) Sleep(INFINITE);
}

void end_a_thread_that_acquires(Ownership& own, LPTHREAD_START_ROUTINE body) {
  Acquirer acquirer = {&own};
  HANDLE thread = CreateThread(nullptr, 0, body, &acquirer, 0, nullptr);
  ASSERT_NE(thread, nullptr);
  until([&] { return acquirer.acquired.load(); });
  EXPECT_FALSE(own.try_acquire());  // and so learns that its thread lives
  acquirer.may_end = true;
  if (body == is_terminated) TerminateThread(thread, 0);
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
}

struct Way {
  const char* name;
  LPTHREAD_START_ROUTINE body;
};

class OwnershipAtTheEndOf : public OwnershipTest, public testing::WithParamInterface<Way> {};

TEST_P(OwnershipAtTheEndOf, AThreadPassesOnWhenItIsKnown) {
  for (int round = 0; round < 3; ++round) {
    end_a_thread_that_acquires(own, GetParam().body);
    note_thread_end();
    ASSERT_TRUE(own.try_acquire());
    own.release();
  }
}

TEST_P(OwnershipAtTheEndOf, AThreadGoesToOneOfMany) {
  end_a_thread_that_acquires(own, GetParam().body);
  note_thread_end();
  std::atomic<int> acquired{0};
  std::atomic<int> asked{0};
  in_threads(16, [&](unsigned) {
    acquired += own.try_acquire();
    ++asked;
    until([&] { return asked == 16; });
  });
  EXPECT_EQ(acquired, 1);
}

INSTANTIATE_TEST_SUITE_P(Ways, OwnershipAtTheEndOf,
                         testing::Values(Way{"Return", returns}, Way{"ExitThread", exits},
                                         Way{"TerminateThread", is_terminated}),
                         [](const auto& way) { return std::string(way.param.name); });

// The end is not announced: the kernel is asked again after a while.
TEST_F(OwnershipTest, PassesOnFromAThreadThatNobodySawEnd) {
  end_a_thread_that_acquires(own, is_terminated);
  EXPECT_FALSE(own.try_acquire());
  until([&] { return own.try_acquire(); });
}

// ---- handles ------------------------------------------------------------------------------------

// Never reset, as when the system had no handle left.
TEST(OwnershipWithoutAHandle, StaysWhereItIsUntilReleased) {
  Ownership own;
  Obedient other;
  EXPECT_TRUE(own.try_acquire());
  note_thread_end();
  EXPECT_FALSE(acquired_by(other, own));
  own.release();
  EXPECT_TRUE(acquired_by(other, own));
  note_thread_end();
  EXPECT_FALSE(own.try_acquire());
  own.drop();
}

// Handle values are reused, and grow with their number.
uintptr_t next_handle() {
  HANDLE event = CreateEventW(nullptr, FALSE, FALSE, nullptr);
  CloseHandle(event);
  return reinterpret_cast<uintptr_t>(event);
}

TEST(OwnershipHandles, GoWithTheDrop) {
  constexpr int kRounds = 100;
  uintptr_t before = next_handle();
  for (int round = 0; round < kRounds; ++round) {
    Ownership own;
    KEEPING_LAST_ERROR(own.reset());
    ASSERT_TRUE(own.try_acquire());
    KEEPING_LAST_ERROR(own.drop());
  }
  EXPECT_LT(next_handle(), before + kRounds);
}

}  // namespace
}  // namespace rh
