// The usable size: all of it belongs to the caller. Zero sizes: unique blocks.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <set>
#include <vector>

#include "support/library.h"
#include "support/names.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

TEST(Usable, OfNullIsZero) { EXPECT_EQ(usable(nullptr), 0u); }

// All neighbours are live at once, each written to its last usable byte.
TEST(Usable, AllOfItIsWritableAndOnesOwn) {
  struct Live {
    void* block;
    std::size_t whole;
  };
  std::vector<Live> live;
  for (const std::size_t size : interesting_sizes(3 * MiB, 2500)) {
    for (int copy = 0; copy < (size < 2000 ? 3 : 1); ++copy) {
      void* block = malloc(opaque(size));
      ASSERT_NE(block, nullptr);
      const std::size_t whole = usable(block);
      ASSERT_GE(whole, size);
      fill(block, whole, live.size());
      live.push_back({block, whole});
    }
  }
  for (std::size_t at = 0; at < live.size(); ++at) {
    EXPECT_TRUE(intact(live[at].block, live[at].whole, at)) << live[at].whole;
    EXPECT_EQ(usable(live[at].block), live[at].whole);
    free(live[at].block);
  }
}

TEST(Usable, OfReallocedBlocksToo) {
  void* block = nullptr;
  std::size_t held = 0;
  Random random(5);
  for (int round = 0; round < 3000; ++round) {
    const std::size_t wanted = random.size(MiB);
    block = realloc(block, wanted);
    ASSERT_NE(block, nullptr);
    const std::size_t whole = usable(block);
    ASSERT_GE(whole, wanted);
    ASSERT_TRUE(intact(block, held < wanted ? held : wanted, 9)) << wanted;
    fill(block, whole, 9);
    held = whole;
  }
  free(block);
}

// The C library serves a request from whatever is left over, so there a larger request may get less.
// Except for a thread's first blocks of a size, which may be longer.
TEST(Usable, GrowsWithTheRequest) {
  if (!on_reheap()) GTEST_SKIP() << "not a rule of the C library's heap";
  for (std::size_t size = 1; size <= 2048; size += size < 128 ? 16 : 8) {
    std::vector<void*> first;
    for (int count = 0; count < 64; ++count) first.push_back(malloc(opaque(size)));
    for (void* block : first) free(block);
  }
  std::size_t last = 0;
  std::size_t last_size = 0;
  for (const std::size_t size : interesting_sizes(40 * MiB, 3000)) {
    void* block = malloc(opaque(size));
    const std::size_t whole = usable(block);
    EXPECT_GE(whole, last) << size << " after " << last_size;
    last = whole;
    last_size = size;
    free(block);
  }
}

struct Zero {
  const char* call;
  void* (*make)();
};

const Zero zeros[] = {
    {"calloc(0, 0)", [] { return calloc(opaque<std::size_t>(0), opaque<std::size_t>(0)); }},
    {"calloc(0, 8)", [] { return calloc(opaque<std::size_t>(0), 8); }},
    {"array of none", [] { return resize_array(nullptr, opaque<std::size_t>(0), 8); }},
    {"operator new(0)", [] { return ::operator new(opaque<std::size_t>(0)); }},
    {"operator new[](0)", [] { return ::operator new[](opaque<std::size_t>(0)); }},
};

// Each is told what gave the block.
template <class Visit> void for_each_zero(Visit visit) {
  for (const Zero& zero : zeros) visit(zero.call, [&] { return zero.make(); });
  for (const Maker& maker : makers()) visit(maker.call, [&] { return maker.make(opaque<std::size_t>(0)); });
}

TEST(ZeroSize, GivesUniqueBlocks) {
  std::set<void*> seen;
  for_each_zero([&](const char* call, auto make) {
    for (int at = 0; at < 200; ++at) {
      errno = 0;
      void* block = make();
      ASSERT_NE(block, nullptr) << call;
      // glibc 2.36 reports a failure for a far-aligned block that it then makes in another way.
      if (on_reheap()) EXPECT_EQ(errno, 0) << call;
      EXPECT_TRUE(seen.insert(block).second) << call << " gave a block that is taken";
    }
  });
  for (void* block : seen) free(block);
}

TEST(ZeroSize, CanGrow) {
  for_each_zero([](const char* call, auto make) {
    void* block = realloc(make(), 5000);
    ASSERT_NE(block, nullptr) << call;
    fill(block, 5000, 1);
    EXPECT_TRUE(intact(block, 5000, 1));
    free(block);
  });
}

// What realloc to no bytes gives: nothing, or a block that is to be freed.
bool is_right_for_none(void* block) {
  const bool is_right = (block == nullptr) == kReallocFrees;
  free(block);
  return is_right;
}

TEST(ZeroSize, ReallocToZeroIsTheSystems) {
  for (const std::size_t size : {0, 1, 100, 5000, 100000, 3000000}) {
    void* block = malloc(size);
    errno = 0;
    EXPECT_TRUE(is_right_for_none(realloc(block, opaque<std::size_t>(0)))) << size;
    EXPECT_EQ(errno, 0) << "it is no failure";
    EXPECT_TRUE(is_right_for_none(resize_array(malloc(size), opaque<std::size_t>(0), 8))) << size;
    EXPECT_TRUE(is_right_for_none(resize_array(malloc(size), 8, opaque<std::size_t>(0)))) << size;
  }
}

SCENARIO(realloc_zero_leaks_nothing) {
  const std::size_t before = resident();
  for (int round = 0; round < 10000; ++round) {
    void* block = malloc(4000);
    std::memset(block, 1, 4000);
    NEED(is_right_for_none(realloc(block, opaque<std::size_t>(0))));
  }
  const std::size_t grown = resident() - before;
  NEED(grown < 8 * MiB, "%zu KiB left of 40 MB", grown / KiB);
  return 0;
}

TEST(ZeroSize, ReallocToZeroLeaksNothing) { EXPECT_SCENARIO("realloc_zero_leaks_nothing"); }

}  // namespace
