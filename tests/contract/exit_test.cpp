// Ways to end: the heap serves up to the last instruction, whichever thread ends the process and whichever runs on.
#include <gtest/gtest.h>
#include <pthread.h>
#include <stdlib.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "support/library.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

void* held[64];

void hold() {
  for (std::size_t at = 0; at < 64; ++at) {
    held[at] = malloc(at * at * 40 + 1);
    fill(held[at], at * at * 40 + 1, at);
  }
}

void use_heap() {
  for (std::size_t at = 0; at < 64; ++at) {
    if (!held[at]) continue;
    NEED(intact(held[at], at * at * 40 + 1, at));
    free(held[at]);
    held[at] = nullptr;
  }
  for (std::size_t size = 1; size < MiB; size = size * 2 + 1) {
    void* block = realloc(malloc(size), size * 2);
    NEED(block, "%zu", size);
    free(block);
  }
}

void say(const char* what) {
  // Writes through stdio, whose own buffer and flush at exit are part of the test.
  std::printf("%s\n", what);
}

// Destroyed after every atexit handler and every object without a priority.
struct Last {
  std::map<int, std::string> tree;
  ~Last() {
    if (tree.empty()) return;
    for (const auto& [key, text] : tree) NEED(text.size() == static_cast<std::size_t>(key));
    tree[5000] = std::string(5000, 'l');
    use_heap();
    say("last object");
  }
};

__attribute__((init_priority(101))) Last last;

// Runs even after that object is destroyed.
bool announced = false;

__attribute__((destructor(101))) void last_function() {
  if (!announced) return;
  hold();
  use_heap();
}

void prepare_exit() {
  announced = true;
  hold();
  for (int at = 0; at < 300; ++at) last.tree[at] = std::string(static_cast<std::size_t>(at), 'l');
  NEED(std::atexit([] {
         use_heap();
         hold();
         say("handler");
       }) == 0);
}

std::atomic<int> in_churn{0};

void churn_for_ever(std::uint64_t seed) {
  ++in_churn;
  Random random(seed);
  std::vector<std::string> texts(100);
  for (;;) texts[random.below(100)] = std::string(random.size(20 * KiB), 'c');
}

void start_churning() {
  for (std::uint64_t at = 0; at < 4; ++at) std::thread(churn_for_ever, at).detach();
  while (in_churn < 4) nap(0.001);
}

SCENARIO(return_from_main) {
  prepare_exit();
  return 7;
}

SCENARIO(exit_in_main) {
  prepare_exit();
  std::exit(7);
}

SCENARIO(exit_beside_others) {
  prepare_exit();
  start_churning();
  std::exit(7);
}

SCENARIO(exit_in_a_thread) {
  prepare_exit();
  std::thread([] { std::exit(7); }).join();
  return 1;
}

SCENARIO(exit_in_a_thread_beside_others) {
  prepare_exit();
  start_churning();
  std::thread([] { std::exit(7); }).join();
  return 1;
}

SCENARIO(main_ends_first) {
  prepare_exit();
  std::thread([] {
    nap(0.05);
    use_heap();
    std::vector<std::string> texts(100, std::string(1000, 't'));
    std::exit(7);
  }).detach();
  pthread_exit(nullptr);
  return 1;
}

// Threads allocate while the program ends. Wine's own heap can be left locked by a thread that is gone.
bool heap_allows_company() {
#ifdef _WIN32
  return on_reheap();
#else
  return true;
#endif
}

void check_ways_to_end(std::initializer_list<const char*> scenarios) {
  for (const char* scenario : scenarios) {
    for (int round = 0; round < rounds(8); ++round) {
      const Outcome outcome = run(scenario, {.deadline = 10});
      EXPECT_EQ(outcome.code, 7) << scenario << ": " << outcome.describe();
      EXPECT_EQ(outcome.out, "handler\nlast object\n") << scenario;
    }
  }
}

TEST(Exit, RunsHandlersAndDestructorsOnTheHeap) {
  check_ways_to_end({"return_from_main", "exit_in_main", "exit_in_a_thread", "main_ends_first"});
}

TEST(Exit, RunsThemBesideThreadsThatAllocate) {
  if (!heap_allows_company()) GTEST_SKIP() << "the process may never end";
  check_ways_to_end({"exit_beside_others", "exit_in_a_thread_beside_others"});
}

#if !defined(_WIN32) || defined(_UCRT)  // msvcrt has no quick_exit

SCENARIO(quick) {
  hold();
  start_churning();
  NEED(at_quick_exit([] {
         use_heap();
         say("quick");
         std::fflush(stdout);
       }) == 0);
  quick_exit(7);
  return 1;
}

TEST(Exit, Quick) {
  if (!heap_allows_company()) GTEST_SKIP() << "the process may never end";
  for (int round = 0; round < rounds(8); ++round) {
    const Outcome outcome = run("quick", {.deadline = 10});
    EXPECT_EQ(outcome.code, 7) << outcome.describe();
    EXPECT_EQ(outcome.out, "quick\n");
  }
}

#endif

SCENARIO(last_thread_returns) {
  prepare_exit();
  for (int at = 0; at < 3; ++at) {
    std::thread([at] {
      nap(0.02 * at);
      std::vector<std::string> texts(100, std::string(1000, 't'));
    }).detach();
  }
  pthread_exit(nullptr);
  return 1;
}

TEST(Exit, AsTheLastThreadReturns) {
  const Outcome outcome = run("last_thread_returns", {.deadline = 10});
  EXPECT_EQ(outcome.code, 0) << outcome.describe();
  EXPECT_EQ(outcome.out, kLastThreadExits ? "handler\nlast object\n" : "");
}

// Memory is waiting to be returned and a helper may be asleep: exit does not wait for that.
SCENARIO(exit_with_much_free) {
  std::vector<void*> blocks;
  for (int at = 0; at < 50000; ++at) {
    blocks.push_back(malloc(1000));
    fill(blocks.back(), 1000, 1);
  }
  for (void* block : blocks) free(block);
  return 7;
}

TEST(Exit, DoesNotWaitForMemoryToBeReturned) {
  const double begin = seconds();
  const Outcome outcome = run("exit_with_much_free", {.deadline = 10});
  EXPECT_EQ(outcome.code, 7) << outcome.describe();
  EXPECT_LT(seconds() - begin, 1.5);
}

SCENARIO(output_only) {
  for (int at = 0; at < 1000; ++at) std::printf("%d\n", at);
  return 0;
}

TEST(Exit, FlushesWhatWasPrinted) {
  const Outcome outcome = run("output_only");
  EXPECT_EQ(outcome.out.size(), 3890u);
}

}  // namespace
