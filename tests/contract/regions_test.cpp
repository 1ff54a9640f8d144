// Heaps over the caller's memory and near code, in a real process: as heaps_test.cpp, built twice.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>
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
#define RH(name) (*there(CONTRACT_FIND(name), #name))
#endif

using namespace contract;

namespace {

[[maybe_unused]] auto* there(auto* function, const char* name) {
  NEED(function, "%s is not there", name);
  return function;
}

alignas(64) unsigned char memory[1 << 20];

// Stands for what a compiler at run time makes: it is the code that blocks have to be near.
const void* code() { return reinterpret_cast<const void*>(&there<void()>); }

// What a displacement of 32 bits reaches from there.
bool is_near(const void* pointer) {
  const auto distance = reinterpret_cast<std::uintptr_t>(pointer) - reinterpret_cast<std::uintptr_t>(code());
  const auto wide = static_cast<std::int64_t>(static_cast<std::intptr_t>(distance));
  return wide >= INT32_MIN && wide <= INT32_MAX;
}

bool is_in_memory(const void* pointer) { return pointer >= memory && pointer < memory + sizeof(memory); }

TEST(Regions, BlocksLieInTheCallersMemory) {
  for (int round = 0; round < 3; ++round) {
    rh_heap* heap = RH(rh_heap_create_in)(memory, sizeof(memory));
    ASSERT_NE(heap, nullptr);
    std::vector<char*> blocks;
    for (const std::size_t size : interesting_sizes(8192, 100)) {
      blocks.push_back(static_cast<char*>(RH(rh_heap_malloc)(heap, size)));
      if (blocks.back() == nullptr) break;
      EXPECT_TRUE(is_in_memory(blocks.back()) && is_in_memory(blocks.back() + size - 1));
      EXPECT_EQ(RH(rh_heap_of)(blocks.back()), heap);
      std::memset(blocks.back(), round, size);
    }
    EXPECT_GT(blocks.size(), 50u);
    for (std::size_t index = 0; index < blocks.size(); index += 2) RH(rh_free)(blocks[index]);
    RH(rh_heap_destroy)(heap);
    EXPECT_EQ(RH(rh_heap_of)(memory), nullptr);
    std::memset(memory, 0xff, sizeof(memory));  // it is the caller's again
  }
}

TEST(Regions, BlocksLieNearCode) {
  rh_heap* heap = RH(rh_heap_create_near)(code(), 256 << 20);
  ASSERT_NE(heap, nullptr);
  for (int round = 0; round < 2; ++round) {
    std::vector<char*> blocks;
    for (const std::size_t size : interesting_sizes(16 << 20, 20)) {
      blocks.push_back(static_cast<char*>(RH(rh_heap_malloc)(heap, size)));
      if (blocks.back() == nullptr) break;
      EXPECT_TRUE(is_near(blocks.back()) && is_near(blocks.back() + size - 1));
      fill(blocks.back(), size, 1);
    }
    EXPECT_GT(blocks.size(), 10u);
    for (char* block : blocks) RH(rh_free)(block);
    EXPECT_GT(RH(rh_heap_trim)(heap), 0u);
  }
  char* moved = static_cast<char*>(RH(rh_heap_malloc)(heap, 1000));
  fill(moved, 1000, 2);
  char* behind = static_cast<char*>(RH(rh_heap_malloc)(heap, 1000));
  moved = static_cast<char*>(RH(rh_realloc)(moved, 1 << 20));
  EXPECT_TRUE(is_near(moved) && intact(moved, 1000, 2));
  RH(rh_free)(behind);
  RH(rh_heap_destroy)(heap);
}

// The C library's names know the blocks too, where this library serves them.
#ifndef CONTRACT_LINKED
TEST(Regions, FreeAndReallocKnowTheBlocks) {
  rh_heap* heap = RH(rh_heap_create_in)(memory, sizeof(memory));
  void* block = RH(rh_heap_malloc)(heap, 100);
  fill(block, 100, 3);
  void* behind = RH(rh_heap_malloc)(heap, 100);
  block = std::realloc(block, 10000);
  EXPECT_TRUE(is_in_memory(block) && intact(block, 100, 3));
  std::free(behind);
  std::free(block);
  rh_heap_stats stats = {};
  stats.struct_size = sizeof(stats);
  EXPECT_TRUE(RH(rh_heap_stats_get)(heap, &stats));
  EXPECT_EQ(stats.blocks, 0u);
  RH(rh_heap_destroy)(heap);
}
#endif

// Blocks are freed by other threads than made them, while heaps come and go.
TEST(Regions, ThreadsFreeEachOthersBlocks) {
  rh_heap* heap = RH(rh_heap_create_near)(code(), 16 << 20);
  ASSERT_NE(heap, nullptr);
  std::atomic<void*> passed{nullptr};
  std::atomic<bool> done{false};
  std::thread comes_and_goes([&] {
    while (!done.load()) {
      rh_heap* other = RH(rh_heap_create_in)(memory, 4096);
      RH(rh_free)(RH(rh_heap_malloc)(other, 10));
      RH(rh_heap_destroy)(other);
    }
  });
  std::thread frees([&] {
    while (!done.load() || passed.load() != nullptr) {
      void* block = passed.exchange(nullptr);
      if (block != nullptr) EXPECT_TRUE(intact(block, 200, 4));
      RH(rh_free)(block);
    }
  });
  for (int count = 0; count < 5000; ++count) {
    void* block = RH(rh_heap_malloc)(heap, 200);
    ASSERT_NE(block, nullptr);
    fill(block, 200, 4);
    RH(rh_free)(passed.exchange(block));
  }
  done.store(true);
  frees.join();
  comes_and_goes.join();
  rh_heap_stats stats = {};
  stats.struct_size = sizeof(stats);
  EXPECT_TRUE(RH(rh_heap_stats_get)(heap, &stats));
  EXPECT_EQ(stats.blocks, 0u);
  RH(rh_heap_destroy)(heap);
}

TEST(Regions, RefuseWhatIsNoMemoryForThem) {
  const auto refused = [](rh_heap* heap, int error) { return heap == nullptr && errno == error; };
  errno = 0;
  EXPECT_TRUE(refused(RH(rh_heap_create_in)(nullptr, 4096), EINVAL));
  EXPECT_TRUE(refused(RH(rh_heap_create_in)(memory, 16), EINVAL));
  EXPECT_TRUE(refused(RH(rh_heap_create_in)(memory, SIZE_MAX), EINVAL));
  void* ours = RH(rh_malloc)(1 << 20);
  EXPECT_TRUE(refused(RH(rh_heap_create_in)(ours, 1 << 20), EINVAL));
  RH(rh_free)(ours);
  rh_heap* heap = RH(rh_heap_create_in)(memory, 8192);
  EXPECT_TRUE(refused(RH(rh_heap_create_in)(memory + 4096, 8192), EINVAL));
  RH(rh_heap_destroy)(heap);
  EXPECT_TRUE(refused(RH(rh_heap_create_near)(nullptr, 4096), EINVAL));
  EXPECT_TRUE(refused(RH(rh_heap_create_near)(code(), 0), EINVAL));
  EXPECT_TRUE(refused(RH(rh_heap_create_near)(code(), SIZE_MAX), EINVAL));
}

#if !defined(_WIN32)
rh_heap* heaps[2];
char* blocks[2];

// The child has both, each as it was, whatever other threads were doing there.
int use_in_child() {
  for (int index = 0; index < 2; ++index) {
    NEED(intact(blocks[index], 1000, 5));
    RH(rh_free)(blocks[index]);
    for (int count = 0; count < 100; ++count) NEED(RH(rh_heap_malloc)(heaps[index], 1000));
    RH(rh_heap_destroy)(heaps[index]);
  }
  return 0;
}

SCENARIO(regions_after_fork) {
  heaps[0] = RH(rh_heap_create_in)(memory, sizeof(memory));
  heaps[1] = RH(rh_heap_create_near)(code(), 16 << 20);
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (rh_heap* heap : heaps)
    threads.emplace_back([&done, heap] {
      while (!done.load()) RH(rh_free)(RH(rh_heap_malloc)(heap, 100));
    });
  for (int round = 0; round < 10; ++round) {
    for (int index = 0; index < 2; ++index) {
      blocks[index] = static_cast<char*>(RH(rh_heap_malloc)(heaps[index], 1000));
      fill(blocks[index], 1000, 5);
    }
    NEED(in_child(use_in_child));
    for (char* block : blocks) RH(rh_free)(block);
  }
  done.store(true);
  for (std::thread& thread : threads) thread.join();
  return 0;
}

TEST(Regions, AreThereInAForkedChild) { EXPECT_SCENARIO("regions_after_fork", {.deadline = 60}); }
#endif

}  // namespace
