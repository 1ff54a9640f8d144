// Memory is returned despite fork and signals, and around pages that cannot be.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

#include "idle.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

// A child has no helper after fork, and must return memory all the same.
SCENARIO(returned_in_a_child) {
  const std::size_t before = resident();
  free_much();
  const pid_t child = fork();
  if (child == 0) {
    free_much();
    NEED(eventually(kAllowed, [&] { return resident() < before + 8 * MiB; }), "%zu MiB stay",
         (resident() - before) / MiB);
    NEED(eventually(6, [] { return threads() == 1; }), "%d threads are left", threads());
    _exit(0);
  }
  NEED(await(child, 20) == 0);
  return 0;
}

// A signal for the process must reach one of the program's threads, since it may expect that thread's own data.
volatile pid_t handled_in = 0;

SCENARIO(helper_takes_no_signals) {
  signal(SIGUSR1, [](int) { handled_in = static_cast<pid_t>(syscall(SYS_gettid)); });
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  sigprocmask(SIG_BLOCK, &one, nullptr);
  free_much();
  nap(0.05);
  kill(getpid(), SIGUSR1);
  nap(0.3);
  NEED(handled_in == 0, "a thread that is not the program's ran the handler");
  sigprocmask(SIG_UNBLOCK, &one, nullptr);
  NEED(handled_in == getpid());
  return 0;
}

// Freeing a block that has pages locked in memory keeps those pages, and little else.
int check_locked(std::initializer_list<std::size_t> places) {
  constexpr std::size_t kSize = 128 * MiB;
  constexpr std::size_t kPage = 4096;
  const std::size_t before = resident();
  auto* block = static_cast<char*>(malloc(kSize));
  NEED(block);
  std::memset(block, 1, kSize);
  for (const std::size_t place : places) NEED(mlock(block + place * (kSize / kPage - 1) / 4 * kPage, kPage) == 0);
  NEED(resident() >= before + kSize);
  free(block);
  NEED(eventually(kAllowed, [&] { return resident() < before + 2 * MiB; }), "%zu MiB stay",
       (resident() - before) / MiB);
  return 0;
}

SCENARIO(locked_at_the_start) { return check_locked({0}); }
SCENARIO(locked_in_the_middle) { return check_locked({2}); }
SCENARIO(locked_at_the_end) { return check_locked({4}); }
SCENARIO(locked_in_several_places) { return check_locked({0, 1, 3, 4}); }

TEST(Idle, LockedPagesKeepLittleElse) {
  static char probe = 1;
  if (mlock(&probe, 1) != 0) GTEST_SKIP() << "no page may be locked here";
  munlock(&probe, 1);
  expect_scenarios({"locked_at_the_start", "locked_in_the_middle", "locked_at_the_end", "locked_in_several_places"});
}

TEST(Idle, ForkAndSignalsReachOnlyTheProgram) { expect_scenarios({"returned_in_a_child", "helper_takes_no_signals"}); }

}  // namespace
