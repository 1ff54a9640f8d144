// Tags: threads that push and pop them at random and free each other's blocks, and who holds how much in the end.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "reheap/reheap.h"
#include "support/held.h"
#include "support/library.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

constexpr unsigned kThreads = 4;

struct Tagged {
  Held held;
  rh_tag tag = 0;
};

struct Shared {
  std::mutex mutex;
  std::vector<Tagged> blocks;
  std::vector<rh_tag> tags;
};

rh_tag current() { return CONTRACT_FIND(rh_tag_current)(); }

std::vector<rh_tag_stats> figures() {
  std::vector<rh_tag_stats> all(256);
  all[0].struct_size = sizeof(rh_tag_stats);
  all.resize(CONTRACT_FIND(rh_tag_stats_get)(0, all.data(), all.size()));
  return all;
}

std::size_t whole() {
  rh_stats stats = {};
  stats.struct_size = sizeof stats;
  NEED(CONTRACT_FIND(rh_stats_get)(&stats));
  return stats.in_use;
}

void put(Shared& shared, Tagged tagged) {
  const std::lock_guard guard(shared.mutex);
  shared.blocks.push_back(tagged);
}

bool get(Shared& shared, Random& random, Tagged* tagged) {
  const std::lock_guard guard(shared.mutex);
  if (shared.blocks.empty()) return false;
  std::swap(shared.blocks[random.below(shared.blocks.size())], shared.blocks.back());
  *tagged = shared.blocks.back();
  shared.blocks.pop_back();
  return true;
}

// A block that stays where it is keeps its tag.
void resize(Tagged& tagged, std::size_t size) {
  const void* before = tagged.held.block;
  tagged.held.resize(size);
  if (tagged.held.block != before) tagged.tag = current();
}

void step(Shared& shared, Random& random) {
  Tagged tagged;
  switch (random.below(8)) {
  case 0: CONTRACT_FIND(rh_tag_push)(shared.tags[random.below(shared.tags.size())]); break;
  case 1: CONTRACT_FIND(rh_tag_pop)(); break;
  case 2:
  case 3:
  case 4: put(shared, {Held(random.size(64 * KiB), random.next()), current()}); break;
  case 5:
    if (!get(shared, random, &tagged)) break;
    resize(tagged, random.size(300 * KiB));
    put(shared, tagged);
    break;
  default:
    if (get(shared, random, &tagged)) tagged.held.drop();
  }
}

void work(Shared& shared, std::uint64_t seed) {
  Random random(seed);
  for (int round = 0; round < rounds(20000); ++round) step(shared, random);
  NEED(!CONTRACT_FIND(rh_tag_push)(255), "no such tag");
  // What it has kept for others goes to them. It ends with tags pushed.
  CONTRACT_FIND(rh_trim)();
}

void run_threads(Shared& shared, std::uint64_t seed) {
  std::vector<std::thread> threads;
  for (unsigned at = 0; at < kThreads; ++at) threads.emplace_back([&, at] { work(shared, seed + at); });
  for (std::thread& thread : threads) thread.join();
}

// Of nobody but threads that have ended, so that nothing lies at hand for the next requests.
void check_figures(const Shared& shared) {
  std::map<rh_tag, std::size_t> held;
  for (const Tagged& tagged : shared.blocks) held[tagged.tag] += CONTRACT_FIND(rh_usable_size)(tagged.held.block);
  CONTRACT_FIND(rh_trim)();
  const std::vector<rh_tag_stats> now = figures();
  std::size_t sum = 0, all = whole();
  for (const rh_tag_stats& tag : now) sum += tag.in_use;
  NEED(sum <= all + 64 * KiB && all <= sum + 64 * KiB, "%zu of %zu", sum, all);
  for (rh_tag tag : shared.tags) {
    if (tag == 0) continue;
    const rh_tag_stats& is = now[tag];
    const std::size_t least = held[tag];
    const bool exact = !is_hardened() || least == 0;
    NEED(exact ? is.in_use == least : is.in_use >= least, "%s: %zu, not %zu", is.name, is.in_use, least);
    NEED(is.held >= is.in_use && is.held_peak >= is.held, "%s: %zu, %zu", is.name, is.held, is.held_peak);
  }
}

SCENARIO(tags_add_up) {
  Shared shared;
  shared.blocks.reserve(kThreads * 20000 * 5);  // not by a thread that has pushed a tag
  shared.tags = {0};
  for (const char* name : {"textures", "sounds", "\"maps\"\n"})
    shared.tags.push_back(CONTRACT_FIND(rh_tag_create)(name));
  for (std::uint64_t round = 0; round < 5; ++round) {
    run_threads(shared, 10 * round);
    check_figures(shared);
  }
  for (Tagged& tagged : shared.blocks) tagged.held.drop();
  shared.blocks.clear();
  check_figures(shared);
  std::string json;
  CONTRACT_FIND(rh_stats_json)
  ([](const char* text, std::size_t length, void* to) { static_cast<std::string*>(to)->append(text, length); }, &json);
  for (const char* part : {"\"tags\"", "\"untagged\"", "\"textures\"", "\"\\\"maps\\\""})
    NEED(json.find(part) != std::string::npos, "%s is not in %s", part, json.c_str());
  return 0;
}

TEST(Tags, AddUp) { EXPECT_SCENARIO("tags_add_up", {.deadline = 60}); }

SCENARIO(tags_of_ended_threads) {
  const rh_tag tag = CONTRACT_FIND(rh_tag_create)("ended");
  std::thread([tag] {
    CONTRACT_FIND(rh_tag_push)(tag);
    std::vector<void*> blocks;
    for (std::size_t size = 100; size <= 4 * KiB; size += 40) blocks.push_back(CONTRACT_FIND(rh_malloc)(size));
    for (void* block : blocks) CONTRACT_FIND(rh_free)(block);
    CONTRACT_FIND(rh_tag_pop)();
  }).join();
  CONTRACT_FIND(rh_trim)();
  const rh_tag_stats is = figures()[tag];
  NEED(is.in_use == 0 && is.held == 0, "%zu in use, %zu held", is.in_use, is.held);
  return 0;
}

TEST(Tags, ATrimTakesAllThatEndedThreadsFreed) { EXPECT_SCENARIO("tags_of_ended_threads"); }

SCENARIO(tags_limited) {
  const rh_tag tag = CONTRACT_FIND(rh_tag_create)("limited");
  NEED(tag != 0 && !CONTRACT_FIND(rh_tag_limit)(0, MiB) && !CONTRACT_FIND(rh_tag_limit)(tag + 1, MiB));
  NEED(CONTRACT_FIND(rh_tag_limit)(tag, 6 * MiB));
  std::vector<std::thread> threads;
  for (unsigned at = 0; at < kThreads; ++at)
    threads.emplace_back([tag, at] {
      std::vector<Held> blocks;
      blocks.reserve(1 << 20);
      Random random(at);
      memory_is_scarce = true;
      CONTRACT_FIND(rh_tag_push)(tag);
      for (int round = 0; round < 3000; ++round) {
        Held held(random.size(256 * KiB), random.next());
        if (held) {
          blocks.push_back(held);
          continue;
        }
        for (Held& each : blocks) each.drop();
        blocks.clear();
      }
      for (Held& each : blocks) each.drop();
      CONTRACT_FIND(rh_tag_pop)();
    });
  for (std::thread& thread : threads) thread.join();
  const rh_tag_stats now = figures()[tag];
  NEED(now.held_peak <= 6 * MiB && now.held_peak > 3 * MiB && now.refused != 0, "%zu", now.held_peak);
  NEED(now.limit == 6 * MiB);
  return 0;
}

TEST(Tags, Limited) { EXPECT_SCENARIO("tags_limited", {.deadline = 60}); }

// On x86 the library's own variables lie before these, elsewhere behind them: as far from the thread pointer.
constexpr std::size_t kMany = 3 * MiB;
thread_local volatile char many[kMany];

// The helper, which the C library does not know, looks at heaps that belong to threads.
SCENARIO(tags_beside_many_variables) {
  many[kMany - 1] = 1;
  std::thread([] { many[0] = 1; }).join();
  NEED(CONTRACT_FIND(rh_tag_push)(CONTRACT_FIND(rh_tag_create)("beside")));
  std::vector<void*> blocks(40000);
  for (void*& block : blocks) block = malloc(100);
  const std::size_t full = resident();
  for (void* block : blocks) free(block);
  NEED(eventually(patience(8), [&] { return resident() + 2 * MiB < full; }), "%zu KiB stay", resident() / KiB);
  return 0;
}

TEST(Tags, BesideManyThreadLocalVariables) {
  EXPECT_SCENARIO("tags_beside_many_variables", {.environment = {{"REHEAP_DECAY_MS", "100"}}, .deadline = 30});
}

}  // namespace
