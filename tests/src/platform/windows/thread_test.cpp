// Identity, waiting, and the helper thread: its start, its end, and its termination.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "last_error.h"
#include "platform/lock.h"
#include "platform/platform.h"
#include "threads.h"

namespace rh {
namespace {

using namespace platform;

TEST(Thread, TokensTellThreadsApart) {
  constexpr unsigned kThreads = 32;
  uint32_t tokens[kThreads] = {};
  std::atomic<unsigned> told{0};
  in_threads(kThreads, [&](unsigned at) {
    tokens[at] = thread_token();
    EXPECT_EQ(thread_token(), tokens[at]);
    ++told;
    until([&] { return told == kThreads; });  // alive together
  });
  std::set<uint32_t> different(tokens, tokens + kThreads);
  EXPECT_EQ(different.size(), kThreads);
  EXPECT_EQ(different.count(0), 0u);
  EXPECT_EQ(different.count(kHelperToken), 0u);
}

TEST(Thread, PatienceKeepsTheLastError) {
  for (unsigned attempt = 0; attempt < 100; ++attempt) KEEPING_LAST_ERROR(back_off(attempt));
}

TEST(Thread, OthersAreThereWhileTheProcessLives) { EXPECT_FALSE(others_are_gone()); }

// ---- the helper ---------------------------------------------------------------------------------

std::atomic<uint32_t> g_word{0};
std::atomic<int> g_runs{0}, g_waits{0};
std::atomic<DWORD> g_id{0};
std::atomic<bool> g_ends{false};

void note_run() {
  g_id = GetCurrentThreadId();
  ++g_runs;
}

void wait_until_told() {
  note_run();
  for (; !g_ends; ++g_waits) wait(g_word, 0, 10'000);
}

void work_until_told() {
  note_run();
  while (!g_ends) Sleep(1);
}

bool always() { return true; }

class Helper : public testing::Test {
 protected:
  Helper() {
    g_word = 0;
    g_runs = 0;
    g_waits = 0;
    g_ends = false;
  }

  // A helper that has ended takes a moment to disappear.
  static void start(void (*main)()) {
    int before = g_runs;
    until([&] { return KEEPING_LAST_ERROR(start_helper(main, always)); });
    until([&] { return g_runs > before; });
  }

  static void end() {
    g_ends = true;
    g_word = 1;
    KEEPING_LAST_ERROR(wake(g_word));
  }

  static HANDLE running() { return OpenThread(SYNCHRONIZE | THREAD_QUERY_LIMITED_INFORMATION, FALSE, g_id); }

  static void expect_gone(HANDLE thread) {
    ASSERT_NE(thread, nullptr);
    EXPECT_EQ(WaitForSingleObject(thread, INFINITE), WAIT_OBJECT_0);
    CloseHandle(thread);
  }
};

TEST_F(Helper, RunsOnceAtATimeAndAgainAfterItsEnd) {
  for (int round = 1; round <= 3; ++round) {
    g_ends = false;
    g_word = 0;
    start(wait_until_told);
    EXPECT_FALSE(KEEPING_LAST_ERROR(start_helper(wait_until_told, always)));
    HANDLE thread = running();
    end();
    expect_gone(thread);
    EXPECT_EQ(g_runs, round);
  }
}

TEST_F(Helper, WaitsForNothingThatHasHappened) {
  g_word = 1;
  g_ends = false;
  start([] {
    wait(g_word, 0, INFINITE);  // not for ever
    note_run();
    wait(g_word, 0, INFINITE);
  });
  until([] { return g_runs == 1; });
  expect_gone(running());
}

TEST_F(Helper, WaitsNoLongerThanItsTime) {
  start([] {
    note_run();
    wait(g_word, 0, 20);
  });
  expect_gone(running());
}

TEST_F(Helper, WokenBeforeItWaitsDoesNotWait) {
  start([] {
    note_run();
    wait(g_word, 0, 1);  // creates the event that wakes it
    until([] { return g_ends.load(); });
    wait(g_word, 0, INFINITE);
  });
  HANDLE thread = running();
  Sleep(20);
  wake(g_word);
  g_ends = true;
  expect_gone(thread);
}

DWORD WINAPI end_with_code(void* code) {
  note_thread_end();
  return static_cast<DWORD>(reinterpret_cast<uintptr_t>(code));
}

void end_thread_with(uintptr_t code) {
  HANDLE thread = CreateThread(nullptr, 0, end_with_code, reinterpret_cast<void*>(code), 0, nullptr);
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
}

TEST_F(Helper, EndsWithTheCodeOfTheThreadThatEndedBefore) {
  start(wait_until_told);
  HANDLE thread = running();
  for (uintptr_t code : {3, 9, 7}) end_thread_with(code);
  end();
  WaitForSingleObject(thread, INFINITE);
  DWORD code = 0;
  EXPECT_TRUE(GetExitCodeThread(thread, &code));
  EXPECT_EQ(code, 7u);
  expect_gone(thread);
}

// The highest of a few new handles: values are reused, so this shows how many are in use. (Wine reports a process's
// handle count as 0.)
uintptr_t highest_of_new_handles() {
  HANDLE events[16] = {};
  uintptr_t highest = 0;
  for (HANDLE& event : events) {
    event = CreateEventW(nullptr, FALSE, FALSE, nullptr);
    highest = std::max(highest, reinterpret_cast<uintptr_t>(event));
  }
  for (HANDLE event : events) CloseHandle(event);
  return highest;
}

TEST_F(Helper, KeepsNoHandleOfThreadsThatEnded) {
  constexpr uintptr_t kThreads = 100, kBetweenHandles = 4;
  start(wait_until_told);
  end_thread_with(0);
  const uintptr_t before = highest_of_new_handles();
  for (uintptr_t code = 0; code < kThreads; ++code) end_thread_with(code);
  EXPECT_LT(highest_of_new_handles(), before + kThreads / 2 * kBetweenHandles);
  stop_helper();
}

size_t stack_size() {
  MEMORY_BASIC_INFORMATION region = {};
  VirtualQuery(&region, &region, sizeof(region));
  uintptr_t end = reinterpret_cast<uintptr_t>(reinterpret_cast<NT_TIB*>(NtCurrentTeb())->StackBase);
  return end - reinterpret_cast<uintptr_t>(region.AllocationBase);
}

std::atomic<size_t> g_stack_size{0};

// Every DLL's thread attach and detach code runs on it, and expects the stack of the program's threads.
TEST_F(Helper, HasAStackLikeEveryThread) {
  size_t of_a_thread = 0;
  in_threads(1, [&](unsigned) { of_a_thread = stack_size(); });
  start([] {
    g_stack_size = stack_size();
    note_run();
  });
  expect_gone(running());
  EXPECT_EQ(g_stack_size, of_a_thread);
}

TEST_F(Helper, StoppedWhileItWaitsIsGoneFromThere) {
  for (int round = 1; round <= 3; ++round) {
    start(wait_until_told);
    HANDLE thread = running();
    KEEPING_LAST_ERROR(stop_helper());
    expect_gone(thread);
    EXPECT_EQ(g_runs, round);
    EXPECT_EQ(g_waits, 0);
  }
}

TEST_F(Helper, StoppedRightAfterItsStartIsGone) {
  for (int round = 0; round < 20; ++round) {
    until([] { return start_helper(wait_until_told, always); });
    stop_helper();
  }
  start(wait_until_told);
  stop_helper();
}

TEST_F(Helper, StoppedInTheMiddleOfItsWorkIsGone) {
  start(work_until_told);
  HANDLE thread = running();
  stop_helper();
  expect_gone(thread);
  start(wait_until_told);
  stop_helper();
}

TEST_F(Helper, StoppedAfterItsEndOrWithoutAStart) {
  KEEPING_LAST_ERROR(stop_helper());
  g_ends = true;
  start(wait_until_told);
  expect_gone(running());
  KEEPING_LAST_ERROR(stop_helper());
  KEEPING_LAST_ERROR(stop_helper());
}

TEST_F(Helper, TheLibrarysThreadsAreCounted) {
  size_t before = os_calls(OsCall::thread);
  g_ends = true;
  start(wait_until_told);
  EXPECT_EQ(os_calls(OsCall::thread), before + 1);
  stop_helper();
}

}  // namespace
}  // namespace rh
