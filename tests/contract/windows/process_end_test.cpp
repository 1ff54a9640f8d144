// Every way to end a process while four threads allocate: it ends, with the right status, and blocks can be freed up to
// the last DLL's detach.
#include <gtest/gtest.h>
#include <windows.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "idle.h"
#include "plugin.h"
#include "support/library.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

const Plugin& plugin() {
  static const HMODULE library = load_named("CONTRACT_PLUGIN");
  NEED(library, "error %lu", GetLastError());
  return *reinterpret_cast<PluginEntry*>(reinterpret_cast<void*>(GetProcAddress(library, "plugin")))();
}

std::atomic<int> in_churn{0};

void churn(std::uint64_t seed) {
  ++in_churn;
  Random random(seed);
  std::vector<std::string> texts(100);
  for (;;) {
    texts[random.below(100)] = std::string(random.size(20 * KiB), 'c');
    plugin().drop(plugin().make(random.size(20 * KiB)));
  }
}

void prepare() {
  plugin().drop_at_end(malloc(5000), free);
  for (std::uint64_t at = 0; at < 4; ++at) std::thread(churn, at).detach();
  while (in_churn < 4) nap(0.001);
}

SCENARIO(end_by_return) {
  prepare();
  return 7;
}

SCENARIO(end_by_exit_process) {
  prepare();
  ExitProcess(7);
}

SCENARIO(end_in_a_thread) {
  prepare();
  std::thread([] { ExitProcess(7); }).join();
  return 1;
}

SCENARIO(end_by_exit_in_a_thread) {
  prepare();
  std::thread([] { std::exit(7); }).join();
  return 1;
}

SCENARIO(end_in_the_farewell) {
  prepare();
  plugin().terminate_at_end(7);
  return 1;
}

SCENARIO(end_by_termination) {
  prepare();
  TerminateProcess(GetCurrentProcess(), 7);
  return 1;
}

// The helper thread, busy with freed memory, outlives the program's only thread.
SCENARIO(end_with_the_last_thread) {
  plugin().drop_at_end(malloc(5000), free);
  free_much();
  ExitThread(7);
}

// Wine 8 counts a thread twice that ends by itself while its process ends, and stops the process before the DLLs
// detach: one run in sixteen of a program that does nothing but end threads, on Wine's own heap. So helpers, which come
// and go, are kept alive.
const Conditions kHelpersStay = {.environment = {{"REHEAP_DECAY_MS", "100000"}}, .deadline = 15};

void end_often(const char* scenario, const char* said, const Conditions& conditions = kHelpersStay) {
  for (int round = 0; round < 10; ++round) {
    const Outcome outcome = run(scenario, conditions);
    ASSERT_EQ(outcome.code, 7) << scenario << " in round " << round << ": " << outcome.describe();
    ASSERT_EQ(outcome.out, said) << scenario;
  }
}

TEST(ProcessEnd, ByReturnOfMain) { end_often("end_by_return", "detached\n"); }
TEST(ProcessEnd, ByExitProcess) { end_often("end_by_exit_process", "detached\n"); }
TEST(ProcessEnd, InAThread) { end_often("end_in_a_thread", "detached\n"); }
TEST(ProcessEnd, ByExitInAThread) { end_often("end_by_exit_in_a_thread", "detached\n"); }
TEST(ProcessEnd, InTheFarewellOfADll) { end_often("end_in_the_farewell", "detached\n"); }
TEST(ProcessEnd, WithTheLastThread) { end_often("end_with_the_last_thread", "detached\n", {.deadline = 15}); }
TEST(ProcessEnd, ByTermination) { end_often("end_by_termination", ""); }

}  // namespace
