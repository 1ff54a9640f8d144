// The thread that returns memory beside fork and signals.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "idle.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

// fork leaves the helper behind; the child has memory to return all the same.
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

// A signal for the process must reach a thread of the program's, which may expect its own thread
// data.
volatile pid_t handled_in = 0;

SCENARIO(helper_takes_no_signals) {
  signal(SIGUSR1, [](int) { handled_in = gettid(); });
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

TEST(Idle, ForkAndSignalsReachOnlyTheProgram) {
  expect_scenarios({"returned_in_a_child", "helper_takes_no_signals"});
}

}  // namespace
