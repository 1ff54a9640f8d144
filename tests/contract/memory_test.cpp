// Limits of memory (REHEAP_LIMIT and rh_limit_set): exact at any number of threads, and refusals like any other.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "reheap/reheap.h"
#include "support/library.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

constexpr std::size_t kHard = 64 * MiB;
constexpr int kThreads = 16;

bool set_limit(std::size_t soft, std::size_t hard) { return CONTRACT_FIND(rh_limit_set)(soft, hard); }

rh_limit now() {
  rh_limit limit = {};
  limit.struct_size = sizeof(limit);
  NEED(CONTRACT_FIND(rh_limit_get)(&limit));
  return limit;
}

// What the test itself needs is not the heap's.
struct Block {
  Block* next;
  std::size_t size;
};

// A list of blocks with patterns; takes no memory of its own.
class Blocks {
 public:
  bool add(void* memory, std::size_t size) {
    if (memory == nullptr) {
      NEED(errno == ENOMEM, "errno is %d", errno);
      return false;
    }
    auto* block = static_cast<Block*>(memory);
    *block = {first_, size};
    fill(block + 1, size - sizeof(Block), size);
    first_ = block;
    bytes_ += size;
    return true;
  }

  void free_until(std::size_t bytes) {
    while (bytes_ > bytes) {
      Block* block = first_;
      NEED(intact(block + 1, block->size - sizeof(Block), block->size));
      first_ = block->next;
      bytes_ -= block->size;
      free(block);
    }
  }

  std::size_t bytes() const { return bytes_; }

 private:
  Block* first_ = nullptr;
  std::size_t bytes_ = 0;
};

void* some_memory(Random& random, std::size_t size) {
  switch (random.below(6)) {
  case 0: return calloc(1, size);
  case 1: return CONTRACT_FIND(rh_aligned_alloc)(std::size_t{16} << random.below(9), size);
  case 2: {
    void* block = malloc(size / 2 + 1);
    void* grown = block != nullptr ? realloc(block, size) : nullptr;
    if (block != nullptr && grown == nullptr) {
      const int error = errno;
      free(block);
      errno = error;
    }
    return grown;
  }
  default: return malloc(size);
  }
}

std::size_t fill_up(Blocks& blocks, Random& random, std::size_t most) {
  for (;;) {
    const std::size_t size = sizeof(Block) + random.size(most);
    errno = 0;
    if (!blocks.add(some_memory(random, size), size)) return size;
    NEED(blocks.bytes() < 2 * kHard, "no limit");
  }
}

void wait_for_all(std::atomic<int>& arrived) {
  arrived.fetch_add(1);
  while (arrived.load() < kThreads) std::this_thread::yield();
}

// They begin when all are there: making a thread takes memory.
template <typename Body> void in_threads(Body body) {
  std::vector<std::thread> threads;
  std::atomic<int> arrived{0};
  for (int at = 0; at < kThreads; ++at)
    threads.emplace_back([=, &arrived] {
      wait_for_all(arrived);
      body(static_cast<std::uint64_t>(at));
    });
  for (std::thread& thread : threads) thread.join();
}

// All threads ask for the last mebibyte at once, time and again.
SCENARIO(race_for_the_last_mebibyte) {
  Blocks held;
  NEED(set_limit(0, kHard));
  while (now().held < kHard - MiB) NEED(held.add(malloc(10000), 10000));
  for (int round = 0; round < 5; ++round) {
    std::atomic<std::size_t> had{0};
    std::atomic<int> full{0};
    in_threads([&had, &full](std::uint64_t) {
      Blocks own;
      do errno = 0;
      while (own.add(malloc(512), 512));
      NEED(now().held <= kHard, "%zu held", now().held);
      had.fetch_add(own.bytes());
      wait_for_all(full);
      own.free_until(0);
    });
    NEED(had.load() <= MiB + 20000 && had.load() >= MiB / 4, "%zu of a mebibyte were had", had.load());
  }
  NEED(now().hard_met >= kThreads);
  held.free_until(0);
  Random random(5);
  fill_up(held, random, 100000);
  NEED(held.bytes() > kHard / 2, "%zu of %zu", held.bytes(), kHard);
  held.free_until(0);
  return 0;
}

// Their heaps are new each time, for nobody has ended, and count as well.
SCENARIO(threads_begin_at_the_limit) {
  Blocks held;
  NEED(set_limit(0, kHard));
  while (now().held < kHard - 4 * MiB) NEED(held.add(malloc(10000), 10000));
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int round = 0; round < 40 && now().held < kHard - 128 * KiB; ++round) {
    std::atomic<int> arrived{0}, full{0}, done{0};
    for (int at = 0; at < kThreads; ++at)
      threads.emplace_back([&] {
        wait_for_all(arrived);
        Blocks own;
        do errno = 0;
        while (own.add(malloc(512), 512));
        NEED(now().held <= kHard, "%zu held", now().held);
        wait_for_all(full);
        own.free_until(0);
        ++done;
        while (!over) nap(0.002);
      });
    while (done < kThreads) nap(0.0005);
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  return 0;
}

TEST(Memory, ThreadsThatBeginStayWithinTheLimit) { EXPECT_SCENARIO("threads_begin_at_the_limit"); }

TEST(Memory, SixteenThreadsRaceForTheLastMebibyte) { EXPECT_SCENARIO("race_for_the_last_mebibyte"); }

SCENARIO(live_at_the_limit) {
  NEED(set_limit(kHard / 2, kHard));
  std::atomic<bool> over{false};
  std::thread watch([&] {
    for (std::size_t most = 0; !over;) {
      most = now().held;
      NEED(most <= kHard, "%zu held", most);
    }
  });
  in_threads([](std::uint64_t seed) {
    Random random(seed + 1);
    Blocks own;
    for (int round = 0; round < 6; ++round) {
      fill_up(own, random, round % 2 != 0 ? 2000 : 300000);
      own.free_until(own.bytes() / 2);
    }
    own.free_until(0);
  });
  over = true;
  watch.join();
  NEED(now().soft_met >= 1 && now().hard_met >= 1);
  return 0;
}

TEST(Memory, SixteenThreadsLiveAtTheLimit) { EXPECT_SCENARIO("live_at_the_limit"); }

void* g_reserve = nullptr;
int g_handled = 0;

void give_up_reserve() {
  ++g_handled;
  if (g_reserve == nullptr) throw std::bad_alloc();
  free(g_reserve);
  g_reserve = nullptr;
}

SCENARIO(new_at_the_limit) {
  try {
    throw 0;  // where the first one allocates
  } catch (int) {}
  NEED(set_limit(0, kHard));
  g_reserve = malloc(kHard / 4);
  std::set_new_handler(give_up_reserve);
  Blocks blocks;
  bool thrown = false;
  while (!thrown) {
    try {
      blocks.add(::operator new(100000), 100000);
      NEED(blocks.bytes() < 2 * kHard);
    } catch (const std::bad_alloc&) {
      thrown = true;
    }
  }
  NEED(g_handled == 2, "%d", g_handled);
  NEED(blocks.bytes() > kHard / 2);
  NEED(::operator new(kHard / 2, std::align_val_t{4096}, std::nothrow) == nullptr);
  blocks.free_until(0);
  ::operator delete(::operator new(kHard / 2, std::align_val_t{4096}), std::align_val_t{4096});
  return 0;
}

TEST(Memory, TheNewHandlerIsAsked) { EXPECT_SCENARIO("new_at_the_limit"); }

SCENARIO(requests_that_do_not_fit) {
  NEED(set_limit(0, kHard));
  for (int round = 0; round < 100; ++round) {
    errno = 0;
    NEED(malloc(opaque(kHard)) == nullptr && errno == ENOMEM);
    NEED(calloc(opaque(kHard), 2) == nullptr);
    NEED(CONTRACT_FIND(rh_aligned_alloc)(opaque(64 * MiB), 2 * kHard) == nullptr && errno == ENOMEM);
    void* block = malloc(1000);
    fill(block, 1000, 3);
    NEED(realloc(block, opaque(2 * kHard)) == nullptr);
    NEED(intact(block, 1000, 3));
    free(block);
  }
  // Moved by pages where the system does that, which takes nothing.
  void* block = malloc(kHard / 4);
  fill(block, kHard / 4, 4);
  block = realloc(block, kHard / 2 - MiB);
  NEED(block != nullptr && intact(block, kHard / 4, 4));
  free(block);
  return 0;
}

TEST(Memory, WhatDoesNotFitIsRefusedAndNothingElse) { EXPECT_SCENARIO("requests_that_do_not_fit"); }

// realloc to a shorter length does not fail for want of memory, whatever else does.
SCENARIO(shorter_at_the_limit) {
  constexpr std::size_t kLong = 20000, kShort = 700;
  NEED(set_limit(0, kHard));
  std::vector<void*> blocks;
  blocks.reserve(kHard / kLong);
  while (void* block = malloc(kLong)) {
    fill(block, kShort, blocks.size());
    blocks.push_back(block);
    NEED(blocks.size() < kHard / kLong);
  }
  while (malloc(kShort) != nullptr) {}
  for (std::size_t at = 0; at < blocks.size(); ++at) {
    void* shorter = realloc(blocks[at], kShort);
    NEED(shorter != nullptr, "block %zu of %zu", at, blocks.size());
    NEED(intact(shorter, kShort, at));
    blocks[at] = shorter;
  }
  for (void* block : blocks) free(block);
  return 0;
}

TEST(Memory, WhatBecomesShorterIsNotRefused) { EXPECT_SCENARIO("shorter_at_the_limit"); }

SCENARIO(wrong_limits) {
  NEED(set_limit(0, kHard));
  NEED(!set_limit(100, 0) && errno == EINVAL);
  NEED(!set_limit(0, MiB - 1));
  NEED(!set_limit(kHard + 1, kHard));
  NEED(now().hard == kHard && now().soft == 0);
  auto* set = CONTRACT_FIND(rh_option_set);
  for (const char* wrong :
       {"",          "0",   "5",           "1023K",           "0%",         "101%",      "-1",      "auto,5G",
        "auto,auto", "end", "soft:1G,end", "soft:2G,hard:1G", "hard:1G,2G", "1G,",       ",1G",     "1G,,end",
        "1Gi",       "1GB", "1.5G",        "1G end",          "soft:",      "soft:auto", "off,end", "99999999999T",
        "Auto"})
    NEED(!set("limit", wrong), "%s", wrong);
  NEED(now().hard == kHard);
  for (const char* right : {"off", "auto", "auto,end", "end,auto", "1M", "64MiB", "0x10000000", "1%", "100%", "1G,end",
                            "soft:1M", "soft:1M,hard:1G", "hard:1G,soft:50%", "soft:10%,hard:20%,end"})
    NEED(set("limit", right), "%s", right);
  NEED(set("limit", "off") && now().hard == 0 && now().soft == 0);
  return 0;
}

TEST(Memory, WhatIsNoLimitIsRefused) { EXPECT_SCENARIO("wrong_limits"); }

SCENARIO(limit_by_environment) {
  NEED(now().hard == kHard);
  NEED(malloc(opaque(2 * kHard)) == nullptr);
  void* block = malloc(opaque(kHard / 2));
  NEED(block != nullptr);
  free(block);
  return 0;
}

TEST(Memory, TheEnvironmentSetsALimit) {
  EXPECT_SCENARIO("limit_by_environment", {.environment = {{"REHEAP_LIMIT", "64M"}}});
  Outcome ended = run("limit_by_environment", {.environment = {{"REHEAP_LIMIT", "64M,end"}}});
  EXPECT_FALSE(ended.succeeded());
  EXPECT_NE(ended.err.find("reheap: out of memory: 134"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find(" bytes were asked for, "), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find(" are held, the limit is 67108864\n"), std::string::npos) << ended.err;
}

std::atomic<int> g_told{0};
void* g_cache[200] = {};

void drop_cache(std::size_t held, std::size_t soft) {
  NEED(g_told.fetch_add(1) == 0 || g_cache[0] == nullptr);
  NEED(held > soft);
  free(malloc(5 * MiB));  // it may allocate
  for (void*& block : g_cache) {
    free(block);
    block = nullptr;
  }
}

SCENARIO(program_drops_its_cache) {
  CONTRACT_FIND(rh_limit_notify)(drop_cache);
  for (void*& block : g_cache) block = calloc(1, 100000);
  NEED(set_limit(kHard / 2, kHard));
  NEED(g_told == 0);
  Blocks blocks;
  while (blocks.bytes() < kHard / 2 - 2 * MiB) NEED(blocks.add(malloc(5000), 5000));
  // What was freed goes back a little later; what the hardened build keeps from use, of each 5 MiB too, later still.
  NEED(g_told >= 1 && g_told <= (is_hardened() ? 8 : 4), "%d", g_told.load());
  NEED(is_hardened() || now().held < kHard / 2 + 8 * MiB);
  blocks.free_until(0);
  return 0;
}

TEST(Memory, TheProgramIsTold) { EXPECT_SCENARIO("program_drops_its_cache"); }

}  // namespace
