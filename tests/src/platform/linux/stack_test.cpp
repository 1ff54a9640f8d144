// The calling thread's stack, of every kind of it. What the tables of code may say is tried by
// tests/lab/test_stacks.py: the recorder follows frames by the same functions.
#include <errno.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "platform/platform.h"
#include "stack_library.h"
#include "support/stacks.h"

namespace {

bool follows_frames() {
#if defined(__x86_64__)
  return true;
#else
  return false;
#endif
}

class StackTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!follows_frames()) GTEST_SKIP() << "frames of this processor are not followed";
  }
};

// ---- what it finds ------------------------------------------------------------------------------

TEST(Stack, IsEmptyWhereFramesAreNotFollowed) {
  Stack stack;
  EXPECT_EQ(rh::platform::stack(stack.frames, kMostFrames) != 0, follows_frames());
}

TEST_F(StackTest, HasTheCallersInnermostFirst) {
  Stack stack;
  Calls calls;
  call_outer(stack, calls);
  EXPECT_TRUE(calls.are_in(stack));
  EXPECT_LE(stack.place(calls.inner), 2u);
}

TEST_F(StackTest, IsCutAtItsOuterEnd) {
  Stack whole, part;
  Calls calls;
  call_outer(whole, calls);
  for (unsigned most = 0; most != 4; ++most) {
    call_outer(part, calls, most);
    EXPECT_EQ(part.count, most);
    EXPECT_TRUE(most == 0 || part.frames[most - 1] == whole.frames[most - 1] || most > whole.place(calls.outer));
    EXPECT_EQ(part.frames[most], 0u);
    part = {};
  }
}

APART unsigned descend(unsigned depth, Stack& stack) {
  if (depth == 0) return stack.count = rh::platform::stack(stack.frames, kMostFrames);
  const unsigned count = descend(depth - 1, stack);
  asm volatile("" ::: "memory");
  return count;
}

TEST_F(StackTest, OfManyFramesHasTheInnermost) {
  Stack stack;
  EXPECT_EQ(descend(1000, stack), kMostFrames);
  EXPECT_EQ(stack.frames[kMostFrames - 1], stack.frames[kMostFrames - 2]);
}

APART uintptr_t call_library(Stack& stack) {
  const unsigned count = stack_from_library(stack.frames, kMostFrames);
  stack.count = count;
  return RETURN_ADDRESS;
}

TEST_F(StackTest, LeavesOutTheLibraryThatAsks) {
  Stack stack;
  const uintptr_t caller = call_library(stack);
  EXPECT_EQ(stack.place(caller), 1u);
}

TEST_F(StackTest, KeepsErrno) {
  Stack stack;
  errno = 77;
  stack.count = rh::platform::stack(stack.frames, kMostFrames);
  EXPECT_EQ(errno, 77);
}

struct Early {
  Stack stack;
};

Early& early() {
  static Early found;
  return found;
}

[[gnu::constructor(101)]] void ask_early() {
  early().stack.count = rh::platform::stack(early().stack.frames, kMostFrames);
}

TEST_F(StackTest, IsThereBeforeMain) { EXPECT_GE(early().stack.count, 2u); }

// ---- other stacks -------------------------------------------------------------------------------

Stack g_elsewhere;
Calls g_calls;

TEST_F(StackTest, IsFoundInThreads) {
  for (int i = 0; i != 3; ++i) {
    g_elsewhere = {};
    std::thread([] { call_outer(g_elsewhere, g_calls); }).join();
    EXPECT_TRUE(g_calls.are_in(g_elsewhere));
  }
}

struct OwnMemory {
  static constexpr size_t kSize = 64 * 1024;
  void* at = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ~OwnMemory() { munmap(at, kSize); }
};

ucontext_t g_main, g_coroutine;

void run_coroutine(const OwnMemory& memory) {
  getcontext(&g_coroutine);
  g_coroutine.uc_stack.ss_sp = memory.at;
  g_coroutine.uc_stack.ss_size = memory.kSize;
  g_coroutine.uc_link = &g_main;
  makecontext(&g_coroutine, [] { call_outer(g_elsewhere, g_calls); }, 0);
  swapcontext(&g_main, &g_coroutine);
}

TEST_F(StackTest, IsFoundInCoroutines) {
  for (int i = 0; i != 3; ++i) {
    OwnMemory memory;
    g_elsewhere = {};
    run_coroutine(memory);
    EXPECT_TRUE(g_calls.are_in(g_elsewhere));
  }
}

APART uintptr_t raise_apart() {
  raise(SIGUSR1);
  return RETURN_ADDRESS;
}

TEST_F(StackTest, OfAHandlerHasWhatItInterrupted) {
  OwnMemory memory;
  const stack_t other = {.ss_sp = memory.at, .ss_flags = 0, .ss_size = memory.kSize};
  sigaltstack(&other, nullptr);
  struct sigaction action = {};
  action.sa_handler = [](int) { call_outer(g_elsewhere, g_calls); };
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  const uintptr_t interrupted = raise_apart();
  const stack_t none = {.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
  sigaltstack(&none, nullptr);
  EXPECT_TRUE(g_calls.are_in(g_elsewhere));
  EXPECT_GT(g_elsewhere.place(interrupted), g_elsewhere.place(g_calls.outer));
  EXPECT_TRUE(g_elsewhere.has(interrupted));
}

// ---- what lies ----------------------------------------------------------------------------------

#if defined(__x86_64__)
// A function without tables that calls another, with whatever it likes as its frame pointer.
[[gnu::naked]] void call_with_frame_pointer(void (*)(), uintptr_t) {
  asm(".cfi_endproc\n\t"
      "push %rbp\n\t"
      "mov %rsi, %rbp\n\t"
      "call *%rdi\n\t"
      "pop %rbp\n\t"
      "ret\n\t"
      ".cfi_startproc");
}

TEST_F(StackTest, OfWildFramesEndsWithoutAFault) {
  OwnMemory memory;
  munmap(memory.at, memory.kSize);
  const uintptr_t gone = reinterpret_cast<uintptr_t>(memory.at);
  for (uintptr_t frame : {uintptr_t{0}, uintptr_t{1}, uintptr_t{8}, gone, gone + 8, ~uintptr_t{7}, uintptr_t{1} << 60,
                          reinterpret_cast<uintptr_t>(&g_elsewhere)}) {
    g_elsewhere = {};
    call_with_frame_pointer([] { call_outer(g_elsewhere, g_calls); }, frame);
    EXPECT_GE(g_elsewhere.count, 3u) << frame;
  }
}
#endif

// ---- fork, threads and handlers at once ---------------------------------------------------------

#if defined(__x86_64__)
// Code that nobody has met: call() runs each of its places once, with a frame.
class NewCode {
 public:
  NewCode() { EXPECT_NE(at_, MAP_FAILED); }
  ~NewCode() { munmap(at_, kSize); }
  void call(void (*function)()) {
    constexpr unsigned char kCode[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};  // push, mov, call, pop, ret
    unsigned char* place = static_cast<unsigned char*>(at_) + (used_ += 16) % kSize;
    __builtin_memcpy(place, kCode, sizeof kCode);
    reinterpret_cast<void (*)(void (*)())>(place)(function);
  }

 private:
  static constexpr size_t kSize = 4 << 20;
  void* at_ = mmap(nullptr, kSize, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  size_t used_ = 0;
};

void ask() {
  Stack stack;
  stack.count = rh::platform::stack(stack.frames, kMostFrames);
}

APART bool finds_all_behind(NewCode& code) {
  g_elsewhere = {};
  code.call([] { g_elsewhere.count = rh::platform::stack(g_elsewhere.frames, kMostFrames); });
  return g_elsewhere.has(RETURN_ADDRESS);
}

TEST_F(StackTest, IsFoundInChildrenWhileThreadsLearn) {
  NewCode codes[3];
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  for (int i = 0; i != 2; ++i)
    threads.emplace_back([&ends, &code = codes[i]] {
      while (!ends) code.call(ask);
    });
  EXPECT_TRUE(finds_all_behind(codes[2]));
  for (int i = 0; i != 40; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(finds_all_behind(codes[2]) ? 0 : 1);
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(finds_all_behind(codes[2]));
  }
  ends = true;
  for (std::thread& thread : threads) thread.join();
}
#endif

std::atomic<unsigned> g_handled{0};

TEST_F(StackTest, IsAskedForByHandlersWhileItIsLookedFor) {
  struct sigaction action = {};
  action.sa_handler = [](int) {
    Stack stack;
    stack.count = rh::platform::stack(stack.frames, kMostFrames);
    g_handled += stack.count != 0;
  };
  sigaction(SIGUSR2, &action, nullptr);
  const pthread_t asked = pthread_self();
  std::atomic<bool> ends{false};
  std::thread sender([&] {
    while (!ends) pthread_kill(asked, SIGUSR2), usleep(20);
  });
  for (int i = 0; g_handled < 200; ++i) {  // each on code that nobody has met
    std::thread([] { call_outer(g_elsewhere, g_calls); }).join();
    Stack stack;
    descend(static_cast<unsigned>(i % 100), stack);
  }
  ends = true;
  sender.join();
}

}  // namespace
