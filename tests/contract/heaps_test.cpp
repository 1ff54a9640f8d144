// The C API (reheap.h). Built twice: against the libraries that serve malloc too, where the names
// are looked up, and against libreheap-core beside the C library's malloc, where they are linked.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "reheap/reheap.h"
#include "support/library.h"
#include "support/names.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"

#ifdef CONTRACT_LINKED
#define RH(name) (::name)
#else
#define RH(name) (*found(CONTRACT_FIND(name), #name))
#endif

using namespace contract;

namespace {

[[maybe_unused]] auto* found(auto* function, const char* name) {
  NEED(function, "%s is not there", name);
  return function;
}

// What compilers warn of that see it: sizes that no block can have, and pointers to what is gone.
template <typename T> T unseen(T value) {
  T volatile hidden = value;
  return hidden;
}

// Far from its ends, where scanning everything in between would take the test's time many times over.
SCENARIO(api_owns_within_huge) {
  constexpr std::size_t kHuge = sizeof(void*) == 8 ? std::size_t{200} << 30 : std::size_t{200} << 20;
  auto* block = static_cast<char*>(RH(rh_malloc)(kHuge));
  if (block == nullptr) return 0;  // the system does not grant that much
  for (int round = 0; round < 20000; ++round)
    NEED(RH(rh_owns)(block + kHuge / 20000 * static_cast<std::size_t>(round)));
  const void* gone = unseen(block + kHuge / 2);
  RH(rh_free)(block);
  NEED(!RH(rh_owns)(gone));
  return 0;
}

TEST(Api, OwnsWithinHugeBlocks) { EXPECT_SCENARIO("api_owns_within_huge", {.deadline = 20}); }

TEST(Api, Version) {
  const std::string expected = std::to_string(RH_VERSION_MAJOR) + '.' + std::to_string(RH_VERSION_MINOR) + '.' +
                               std::to_string(RH_VERSION_PATCH);
  EXPECT_EQ(RH(rh_version)(), expected);
}

TEST(Api, Blocks) {
  for (const std::size_t size : interesting_sizes(4 * MiB, 300)) {
    auto* block = static_cast<char*>(RH(rh_malloc)(size));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 16, 0u);
    EXPECT_GE(RH(rh_usable_size)(block), size);
    EXPECT_TRUE(RH(rh_owns)(block));
    fill(block, size, 1);
    auto* zero = static_cast<char*>(RH(rh_calloc)(1, size));
    ASSERT_NE(zero, nullptr);
    EXPECT_TRUE(all_zero(zero, size));
    block = static_cast<char*>(RH(rh_realloc)(block, size * 2 + 1));
    EXPECT_TRUE(intact(block, size, 1)) << size;
    RH(rh_free)(block);
    RH(rh_free)(zero);
  }
  RH(rh_free)(nullptr);
  EXPECT_EQ(RH(rh_usable_size)(nullptr), 0u);
  EXPECT_EQ(RH(rh_realloc)(RH(rh_malloc)(10), 0), nullptr);
}

// A thread's first blocks of a size may be longer.
TEST(Api, GoodSizeIsTheUsableSize) {
  for (const std::size_t size : interesting_sizes(8 * MiB, 3000)) {
    const std::size_t good = RH(rh_good_size)(size);
    std::vector<void*> blocks;
    std::size_t usable = 0;
    do {
      blocks.push_back(RH(rh_malloc)(size));
      usable = RH(rh_usable_size)(blocks.back());
    } while (usable > good && blocks.size() <= 64);
    EXPECT_EQ(usable, good) << size;
    for (void* block : blocks) RH(rh_free)(block);
  }
}

TEST(Api, Failures) {
  errno = 0;
  EXPECT_EQ(RH(rh_malloc)(unseen(SIZE_MAX)), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  errno = 0;
  EXPECT_EQ(RH(rh_malloc)(unseen(SIZE_MAX / 2 + 1)), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  for (const std::size_t size : {SIZE_MAX, SIZE_MAX / 2 + 1}) EXPECT_GE(RH(rh_good_size)(unseen(size)), size);
  errno = 0;
  EXPECT_EQ(RH(rh_calloc)(unseen(SIZE_MAX / 2 + 2), 2), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  void* block = RH(rh_malloc)(100);
  fill(block, 100, 2);
  errno = 0;
  EXPECT_EQ(RH(rh_realloc)(block, unseen(SIZE_MAX - 100)), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_TRUE(intact(block, 100, 2));
  RH(rh_free)(block);
  for (const std::size_t alignment : {0, 3, 24, 100}) {
    errno = 0;
    EXPECT_EQ(RH(rh_aligned_alloc)(alignment, 100), nullptr) << alignment;
    EXPECT_EQ(errno, EINVAL) << alignment;
  }
}

TEST(Api, Alignment) {
  for (std::size_t alignment = 1; alignment <= (narrow ? 64 * MiB : 1024 * MiB); alignment *= 2) {
    void* block = RH(rh_aligned_alloc)(alignment, 5000);
    ASSERT_NE(block, nullptr) << alignment;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0u);
    fill(block, 5000, 3);
    EXPECT_TRUE(RH(rh_owns)(block));
    RH(rh_free)(block);
  }
}

int global_number = 0;

TEST(Api, OwnsOnlyItsOwn) {
  int local = 0;
  const auto owns = [](const void* pointer) { return RH(rh_owns)(pointer); };
  EXPECT_FALSE(owns(nullptr));
  EXPECT_FALSE(owns(&local));
  EXPECT_FALSE(owns(&global_number));
  EXPECT_FALSE(owns(reinterpret_cast<const void*>(&std::abort)));
  EXPECT_FALSE(owns(reinterpret_cast<const void*>(std::uintptr_t{1})));
  EXPECT_FALSE(owns(reinterpret_cast<const void*>(~std::uintptr_t{0})));
  for (const std::size_t size : {10, 5000, 100000, 5000000}) {
    auto* block = static_cast<char*>(RH(rh_malloc)(size));
    EXPECT_TRUE(owns(block));
    EXPECT_TRUE(owns(block + size - 1));
    RH(rh_free)(block);
    void* foreign = foreign_makers().front().make(size);
    EXPECT_FALSE(owns(foreign)) << size;
    free_foreign(foreign);
    void* plain = malloc(size);
    EXPECT_EQ(owns(plain), on_reheap()) << size;
    free(plain);
  }
}

TEST(Api, BothHeapsSideBySide) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (std::uint64_t at = 0; at < 4; ++at) {
    threads.emplace_back([&, at] {
      Random random(at);
      for (int round = 0; round < 5000; ++round) {
        const std::size_t size = random.size(20 * KiB);
        void* ours = RH(rh_malloc)(size);
        void* theirs = malloc(size);
        fill(ours, size, at);
        fill(theirs, size, ~at);
        wrong += !intact(ours, size, at) + !intact(theirs, size, ~at);
        RH(rh_free)(ours);
        free(theirs);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

// ---- heaps -------------------------------------------------------------------------------------

TEST(Heaps, EveryFunction) {
  rh_heap* heap = RH(rh_heap_create)();
  ASSERT_NE(heap, nullptr);
  for (const std::size_t size : interesting_sizes(2 * MiB, 200)) {
    void* block = RH(rh_heap_malloc)(heap, size);
    void* zero = RH(rh_heap_calloc)(heap, 1, size);
    void* aligned = RH(rh_heap_aligned_alloc)(heap, 256, size);
    ASSERT_TRUE(block && zero && aligned) << size;
    EXPECT_TRUE(RH(rh_owns)(block));
    EXPECT_TRUE(all_zero(zero, size)) << size;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % 256, 0u);
    fill(block, size, 1);
    fill(zero, size, 2);
    fill(aligned, size, 3);
    block = RH(rh_heap_realloc)(heap, block, size * 2 + 1);
    zero = RH(rh_heap_realloc)(heap, zero, size / 2 + 1);
    EXPECT_TRUE(intact(block, size, 1));
    EXPECT_TRUE(intact(zero, size / 2, 2));
    EXPECT_TRUE(intact(aligned, size, 3));
    if (size % 3 == 0) RH(rh_free)(block);
    if (size % 3 == 1) RH(rh_free)(aligned);
  }
  errno = 0;
  EXPECT_EQ(RH(rh_heap_malloc)(heap, unseen(SIZE_MAX)), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  errno = 0;
  EXPECT_EQ(RH(rh_heap_calloc)(heap, unseen(SIZE_MAX / 2), 3), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_NE(RH(rh_heap_realloc)(heap, nullptr, 10), nullptr);
  RH(rh_heap_destroy)(heap);
}

SCENARIO(heap_destroyed_whole) {
  const std::size_t before = resident();
  for (int round = 0; round < 3; ++round) {
    rh_heap* heap = RH(rh_heap_create)();
    NEED(heap);
    Random random(1);
    for (std::size_t held = 0; held < 100 * MiB;) {
      const std::size_t size = random.size(random.one_in(100) ? 3 * MiB : 4 * KiB);
      void* block = RH(rh_heap_malloc)(heap, size);
      NEED(block);
      std::memset(block, 1, size);
      held += size;
    }
    RH(rh_heap_destroy)(heap);
  }
  NEED(peak_resident() < before + 180 * MiB, "peak %zu MiB for 100, three times", (peak_resident() - before) / MiB);
  NEED(eventually(4, [&] { return resident() < before + 12 * MiB; }), "%zu MiB stay", (resident() - before) / MiB);
  return 0;
}

TEST(Heaps, MemoryOfADestroyedHeapComesBack) { EXPECT_SCENARIO("heap_destroyed_whole"); }

// Destroying one heap touches neither the other heaps nor the plain blocks.
SCENARIO(thousand_heaps) {
  std::size_t early = 0;
  for (int round = 0; round < 6; ++round) {
    std::vector<rh_heap*> heaps(1000);
    std::vector<char*> blocks(10000);
    void* plain = RH(rh_malloc)(64);
    fill(plain, 64, 9);
    for (rh_heap*& heap : heaps) NEED((heap = RH(rh_heap_create)()) != nullptr);
    for (std::size_t at = 0; at < blocks.size(); ++at) {
      blocks[at] = static_cast<char*>(RH(rh_heap_malloc)(heaps[at % 1000], 64));
      NEED(blocks[at]);
      fill(blocks[at], 64, at);
    }
    for (std::size_t at = 0; at < 1000; at += 2) RH(rh_heap_destroy)(heaps[at]);
    for (std::size_t at = 1; at < blocks.size(); at += 2) NEED(intact(blocks[at], 64, at));
    for (std::size_t at = 1; at < 1000; at += 2) RH(rh_heap_destroy)(heaps[at]);
    NEED(intact(plain, 64, 9));
    RH(rh_free)(plain);
    if (round == 1) early = peak_resident();
  }
  // A heap's slab may begin at any of four places within 64 KiB, and touches a page or so of it there.
  NEED(resident() < early + 16 * MiB, "%zu KiB at most in 2 rounds, %zu after 6", early / KiB, resident() / KiB);
  return 0;
}

TEST(Heaps, AThousand) { EXPECT_SCENARIO("thousand_heaps"); }

SCENARIO(heap_used_by_threads) {
  rh_heap* heap = RH(rh_heap_create)();
  NEED(heap);
  struct Slot {
    std::atomic<void*> block{nullptr};
  };
  // The block contains its size and seed, so that the slots pass on a single pointer.
  struct Head {
    std::size_t size;
    std::uint64_t seed;
  };
  std::vector<Slot> slots(300);
  std::vector<std::thread> threads;
  for (std::uint64_t at = 0; at < 6; ++at) {
    threads.emplace_back([&, at] {
      Random random(at);
      for (int round = 0; round < 8000; ++round) {
        const Head head{sizeof(Head) + random.size(8 * KiB), random.next()};
        auto* block = static_cast<Head*>(RH(rh_heap_malloc)(heap, head.size));
        NEED(block);
        *block = head;
        fill(block + 1, head.size - sizeof(Head), head.seed);
        auto* old = static_cast<Head*>(slots[random.below(300)].block.exchange(block));
        if (!old) continue;
        NEED(intact(old + 1, old->size - sizeof(Head), old->seed), "%zu", old->size);
        RH(rh_free)(old);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  RH(rh_heap_destroy)(heap);
  return 0;
}

TEST(Heaps, UsedBySeveralThreads) { EXPECT_SCENARIO("heap_used_by_threads"); }

// The thread that created a heap ends; the heap does not.
TEST(Heaps, OutliveTheirMaker) {
  rh_heap* heap = nullptr;
  void* block = nullptr;
  std::thread([&] {
    heap = RH(rh_heap_create)();
    block = RH(rh_heap_malloc)(heap, 1000);
    fill(block, 1000, 1);
  }).join();
  void* more = RH(rh_heap_malloc)(heap, 1000);
  ASSERT_NE(more, nullptr);
  EXPECT_TRUE(intact(block, 1000, 1));
  std::thread([&] { RH(rh_free)(block); }).join();
  std::thread([&] { RH(rh_heap_destroy)(heap); }).join();
}

// ---- heaps bound to a thread -------------------------------------------------------------------

TEST(BoundHeaps, ServeAndAreReset) {
  rh_heap* heap = RH(rh_heap_create_bound)();
  ASSERT_NE(heap, nullptr);
  for (int round = 0; round < 4; ++round) {
    std::vector<char*> blocks;
    for (const std::size_t size : interesting_sizes(2 * MiB, 200)) {
      blocks.push_back(static_cast<char*>(RH(rh_heap_malloc)(heap, size)));
      fill(blocks.back(), size, size);
      auto* zero = static_cast<char*>(RH(rh_heap_calloc)(heap, 1, size));
      EXPECT_TRUE(all_zero(zero, size)) << size;
      std::memset(zero, 0xee, size);
      if (size % 2) RH(rh_free)(zero);
    }
    std::size_t at = 0;
    for (const std::size_t size : interesting_sizes(2 * MiB, 200)) EXPECT_TRUE(intact(blocks[at++], size, size));
    RH(rh_heap_reset)(heap);
  }
  RH(rh_heap_destroy)(heap);
}

// Another thread frees, and resizes, where the copy is its own.
TEST(BoundHeaps, OthersFreeAndResizeItsBlocks) {
  rh_heap* heap = RH(rh_heap_create_bound)();
  std::vector<void*> blocks(20000);
  for (void*& block : blocks) fill(block = RH(rh_heap_malloc)(heap, 100), 100, 1);
  std::vector<void*> moved;
  std::thread([&] {
    for (std::size_t at = 0; at < blocks.size(); ++at)
      if (at % 50)
        RH(rh_free)(blocks[at]);
      else
        moved.push_back(RH(rh_realloc)(blocks[at], 3000));
  }).join();
  RH(rh_heap_destroy)(heap);
  for (void* block : moved) {
    EXPECT_TRUE(intact(block, 100, 1));
    RH(rh_free)(block);
  }
}

SCENARIO(bound_heap_outlives_its_thread) {
  rh_heap* heap = nullptr;
  void* block = nullptr;
  std::thread([&] {
    heap = RH(rh_heap_create_bound)();
    for (int at = 0; at < 1000; ++at) NEED((block = RH(rh_heap_malloc)(heap, 500)));
    fill(block, 500, 1);
  }).join();
  std::thread([&] { RH(rh_free)(RH(rh_malloc)(500)); }).join();  // has the heap of the one that ended
  std::thread([&] {
    NEED((block = RH(rh_heap_realloc)(heap, block, 5000)));
    NEED(RH(rh_heap_of)(block) == heap);
    NEED(intact(block, 500, 1));
    for (int at = 0; at < 1000; ++at) fill(RH(rh_heap_malloc)(heap, 500), 500, 2);
    NEED(intact(block, 500, 1));
    RH(rh_free)(block);
  }).join();
  RH(rh_heap_destroy)(heap);
  return 0;
}

TEST(BoundHeaps, OutliveTheirThread) { EXPECT_SCENARIO("bound_heap_outlives_its_thread"); }

// Threads make heaps, pass on what they take there, and destroy them while others free.
SCENARIO(bound_heaps_of_many_threads) {
  std::vector<std::atomic<char*>> slots(100);
  std::vector<std::thread> threads;
  for (std::uint64_t at = 0; at < 4; ++at) {
    threads.emplace_back([&, at] {
      Random random(at);
      rh_heap* passing = RH(rh_heap_create_bound)();
      for (int round = 0; round < 300; ++round) {
        rh_heap* heap = RH(rh_heap_create_bound)();
        std::vector<std::pair<char*, std::size_t>> kept;
        for (int step = 0; step < 100; ++step) {
          const std::size_t size = 64 + random.size(8 * KiB);
          kept.emplace_back(static_cast<char*>(RH(rh_heap_malloc)(heap, size)), size);
          NEED(kept.back().first);
          fill(kept.back().first, size, at);
          auto* passed = static_cast<char*>(RH(rh_heap_malloc)(passing, 64));
          fill(passed, 64, 9);
          char* const old = slots[random.below(100)].exchange(passed);
          if (!old) continue;
          NEED(intact(old, 64, 9));
          RH(rh_free)(old);
        }
        for (const auto& [block, size] : kept) NEED(intact(block, size, at), "%zu", size);
        if (round % 3 == 0) RH(rh_heap_reset)(heap);
        RH(rh_heap_destroy)(heap);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}

TEST(BoundHeaps, OfManyThreads) { EXPECT_SCENARIO("bound_heaps_of_many_threads"); }

// Beside libreheap-core they are the system's.
TEST(Api, BlocksOfMalloc) {
  void* block = std::malloc(100);
  fill(block, 100, 1);
  EXPECT_GE(RH(rh_expand)(block, 100), 100u);
  EXPECT_TRUE(intact(block, 100, 1));
  block = RH(rh_aligned_realloc)(block, 4096, 5000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 4096, 0u);
  EXPECT_TRUE(RH(rh_owns)(block));
  EXPECT_TRUE(intact(block, 100, 1));
  RH(rh_free_aligned_sized)(block, 4096, 5000);
  EXPECT_EQ(RH(rh_aligned_realloc)(std::malloc(100), 4096, 0), nullptr);
  void* freed[] = {std::malloc(10), RH(rh_malloc)(10)};
  RH(rh_free_batch)(freed, 2);
}

// ---- what can be asked of one heap --------------------------------------------------------------

TEST(Heaps, KnowTheirBlocks) {
  int local = 0;
  rh_heap* heap = RH(rh_heap_create)();
  void* blocks[3] = {};
  ASSERT_EQ(RH(rh_heap_alloc_batch)(heap, 5000, blocks, 3), 3u);
  blocks[0] = RH(rh_aligned_realloc)(blocks[0], 4096, 100000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks[0]) % 4096, 0u);
  for (void* block : blocks) EXPECT_EQ(RH(rh_heap_of)(static_cast<char*>(block) + 4999), heap);
  void* others[4] = {&local, RH(rh_malloc)(5000), std::malloc(5000), nullptr};
  for (void* other : others) EXPECT_EQ(RH(rh_heap_of)(other), nullptr);
  std::free(others[2]);
  void* freed[] = {others[1], blocks[1], nullptr, blocks[2]};
  RH(rh_free_batch)(freed, 4);
  rh_heap_stats before = {}, after = {};
  before.struct_size = after.struct_size = sizeof after;
  EXPECT_TRUE(RH(rh_heap_stats_get)(heap, &before));
  const std::size_t less = RH(rh_heap_trim)(heap);
  EXPECT_TRUE(RH(rh_heap_stats_get)(heap, &after));
  EXPECT_EQ(after.held, before.held - less);
  EXPECT_EQ(after.blocks, 1u);
  EXPECT_EQ(RH(rh_heap_trim)(heap), 0u);
  RH(rh_free_aligned_sized)(blocks[0], 4096, 100000);
  RH(rh_heap_destroy)(heap);
}

TEST(Heaps, BlocksGrowWhereTheyLie) {
  rh_heap* heap = RH(rh_heap_create)();
  for (const std::size_t size : {100, 5000, 100000, 5000000}) {
    void* block = RH(rh_heap_malloc)(heap, size);
    fill(block, size, 1);
    const std::size_t grown = RH(rh_expand)(block, size + size / 2);
    EXPECT_TRUE(grown == 0 || grown >= size + size / 2);
    if (grown != 0) std::memset(static_cast<char*>(block) + size, 1, grown - size);
    EXPECT_TRUE(intact(block, size, 1));
    RH(rh_free_sized)(block, grown != 0 ? size + size / 2 : size);
  }
  void* block = RH(rh_heap_malloc)(heap, 100);
  EXPECT_GE(RH(rh_expand)(block, 101), 101u);
  RH(rh_heap_destroy)(heap);
}

// The blocks that stay are visited once in each walk, in order, whatever the other threads do.
struct Visited {
  std::map<void*, int> stay;
  void* last = nullptr;
  std::size_t bytes = 0;
};

bool note_visit(void* block, std::size_t size, void* context) {
  auto& visited = *static_cast<Visited*>(context);
  NEED(block > visited.last);
  visited.last = block;
  visited.bytes += size;
  if (const auto found = visited.stay.find(block); found != visited.stay.end()) ++found->second;
  return true;
}

SCENARIO(heap_walked_by_some_and_used_by_others) {
  rh_heap* heap = RH(rh_heap_create)();
  Visited visited;
  Random random(7);
  for (int at = 0; at < 3000; ++at) visited.stay[RH(rh_heap_malloc)(heap, random.size(60 * KiB))] = 0;
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    threads.emplace_back([&, seed] {
      Random own(seed);
      void* kept[50] = {};
      while (!done) {
        void*& slot = kept[own.below(50)];
        RH(rh_free)(slot);
        slot = RH(rh_heap_malloc)(heap, own.size(60 * KiB));
        if (own.one_in(200)) RH(rh_heap_trim)(heap);
      }
      RH(rh_free_batch)(kept, 50);
    });
  }
  for (int walk = 1; walk <= 20; ++walk) {
    visited.last = nullptr;
    NEED(RH(rh_heap_walk)(heap, note_visit, &visited));
    for (const auto& [block, count] : visited.stay) NEED(count == walk, "%p: %d", block, count);
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  RH(rh_heap_trim)(heap);
  visited.last = nullptr;
  visited.bytes = 0;
  NEED(RH(rh_heap_walk)(heap, note_visit, &visited));
  rh_heap_stats stats = {};
  stats.struct_size = sizeof stats;
  NEED(RH(rh_heap_stats_get)(heap, &stats));
  NEED(stats.blocks == visited.stay.size(), "%zu", stats.blocks);
  // The hardened build tells what was asked for.
  NEED(is_hardened() ? stats.in_use > visited.bytes : stats.in_use == visited.bytes, "%zu of %zu", visited.bytes,
       stats.in_use);
  RH(rh_heap_destroy)(heap);
  return 0;
}

TEST(Heaps, AreWalkedWhileOthersUseThem) { EXPECT_SCENARIO("heap_walked_by_some_and_used_by_others"); }

// ---- what is held ------------------------------------------------------------------------------

TEST(Stats, FillUpToTheCallersSize) {
  rh_stats stats{};
  EXPECT_FALSE(RH(rh_stats_get)(&stats)) << "struct_size was not set";
  stats.struct_size = sizeof stats;
  void* block = RH(rh_malloc)(5 * MiB);
  ASSERT_TRUE(RH(rh_stats_get)(&stats));
  EXPECT_GE(stats.in_use, 5 * MiB);
  EXPECT_GE(stats.spans_in_use, 5 * MiB);
  EXPECT_GE(stats.committed, stats.spans_in_use);
  EXPECT_GE(stats.committed_peak, stats.committed);
  EXPECT_GE(stats.reserved, stats.committed);
  EXPECT_GE(stats.spans_in_use_peak, stats.spans_in_use);
  EXPECT_GT(stats.heaps, 0u);
  EXPECT_GT(stats.os_calls, 0u);
  const std::size_t used = stats.in_use;
  RH(rh_free)(block);
  ASSERT_TRUE(RH(rh_stats_get)(&stats));
  EXPECT_LE(stats.in_use, used - 5 * MiB);

  // A caller built against an older header has a shorter struct.
  rh_stats shorter;
  std::memset(&shorter, 0x77, sizeof shorter);
  shorter.struct_size = offsetof(rh_stats, in_use);
  ASSERT_TRUE(RH(rh_stats_get)(&shorter));
  EXPECT_EQ(shorter.in_use, static_cast<std::size_t>(0x7777777777777777u));
  EXPECT_NE(shorter.reserved, static_cast<std::size_t>(0x7777777777777777u));
}

TEST(Stats, CountWhatOthersFree) {
  rh_stats before{};
  rh_stats after{};
  before.struct_size = after.struct_size = sizeof(rh_stats);
  ASSERT_TRUE(RH(rh_stats_get)(&before));
  std::vector<void*> blocks;
  for (int at = 0; at < 10000; ++at) blocks.push_back(RH(rh_malloc)(100));
  std::thread([&] {
    for (void* block : blocks) RH(rh_free)(block);
  }).join();
  ASSERT_TRUE(RH(rh_stats_get)(&after));
  EXPECT_GE(after.remote_frees, before.remote_frees + 9000);
  EXPECT_GT(after.remote_batches, before.remote_batches);
  EXPECT_LT(after.remote_batches - before.remote_batches, 10000u) << "a message carries more than one";
}

SCENARIO(trim_returns) {
  std::vector<void*> blocks;
  for (int at = 0; at < 50000; ++at) {
    blocks.push_back(RH(rh_malloc)(1000));
    std::memset(blocks.back(), 1, 1000);
  }
  const std::size_t full = resident();
  for (void* block : blocks) RH(rh_free)(block);
  const std::size_t returned = RH(rh_trim)();
  NEED(returned > 40 * MiB, "%zu KiB", returned / KiB);
  NEED(resident() < full - 40 * MiB, "%zu KiB of %zu are left", resident() / KiB, full / KiB);
  return 0;
}

TEST(Stats, TrimReturnsAtOnce) { EXPECT_SCENARIO("trim_returns"); }

}  // namespace
