// realloc preserves the content of the block, in either direction, and moves large blocks without copying.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "support/library.h"
#include "support/names.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

const std::size_t sizes[] = {1,     2,     15,    16,     17,     31,     33,     48,     64,     100,
                             127,   129,   200,   256,    500,    512,    1000,   1024,   1500,   2048,
                             3000,  4095,  4097,  6000,   8192,   10000,  16384,  20000,  32768,  40000,
                             65536, 65537, 90000, 131072, 200000, 262145, 400000, 524288, 1 << 20};

TEST(Realloc, KeepsTheContentBetweenAnyTwoSizes) {
  for (const std::size_t from : sizes) {
    for (const std::size_t to : sizes) {
      void* block = malloc(from);
      void* neighbour = malloc(from);
      fill(block, from, to);
      fill(neighbour, from, ~to);
      block = realloc(block, to);
      ASSERT_NE(block, nullptr);
      EXPECT_TRUE(intact(block, std::min(from, to), to)) << from << " to " << to;
      fill(block, usable(block), 1);
      EXPECT_TRUE(intact(neighbour, from, ~to)) << from << " to " << to;
      free(block);
      free(neighbour);
    }
  }
}

TEST(Realloc, KeepsTheContentOfLargeBlocks) {
  const std::size_t large[] = {MiB + 5, 3 * MiB, 4 * MiB + 4096, 9 * MiB, 33 * MiB};
  for (const std::size_t from : large) {
    for (const std::size_t to : {large[0], large[1], large[2], large[3], large[4], std::size_t{100}}) {
      void* block = malloc(from);
      fill(block, from, to);
      block = realloc(block, to);
      ASSERT_NE(block, nullptr);
      EXPECT_TRUE(intact(block, std::min(from, to), to)) << from << " to " << to;
      free(block);
    }
  }
}

// Grows in small steps beside other blocks that do the same, as vectors and strings do.
TEST(Realloc, KeepsTheContentOfManyThatGrow) {
  struct Live {
    void* block = nullptr;
    std::size_t size = 0;
  };
  std::vector<Live> live(12);
  for (std::size_t size = 1; size < 3 * MiB; size += size / 7 + 1) {
    for (std::size_t at = 0; at < live.size(); ++at) {
      Live& slot = live[at];
      slot.block = realloc(slot.block, size + at);
      ASSERT_NE(slot.block, nullptr);
      ASSERT_TRUE(intact(slot.block, slot.size, at)) << slot.size << " to " << size;
      slot.size = size + at;
      fill(slot.block, slot.size, at);
    }
  }
  for (std::size_t at = 0; at < live.size(); ++at) {
    Live& slot = live[at];
    while (slot.size > 1) {
      slot.size -= slot.size / 5 + 1;
      slot.block = realloc(slot.block, slot.size + 1);
      ASSERT_TRUE(intact(slot.block, slot.size, at)) << slot.size;
    }
    free(slot.block);
  }
}

// Where their pages are moved: the places were others' before, and what was moved lies in several mappings.
SCENARIO(long_ones_grow) {
  constexpr std::size_t kMost = 20 * MiB, kMarked = 64 * 1024;
  struct {
    unsigned char* bytes = nullptr;
    std::size_t size = 0;
  } buffers[8];
  Random random(7);
  for (unsigned step = 0; step < 400; ++step) {
    auto& buffer = buffers[random.size(8) - 1];
    std::size_t size = buffer.size + MiB + random.size(3 * MiB);
    if (size > kMost) {
      free(buffer.bytes);
      buffer = {};
      size = 2 * MiB;
    }
    buffer.bytes = static_cast<unsigned char*>(realloc(buffer.bytes, size));
    NEED(buffer.bytes != nullptr);
    for (std::size_t at = 0; at < size; at += kMarked) {
      if (at < buffer.size) NEED(buffer.bytes[at] == at / kMarked % 251, "step %u, at %zu", step, at);
      buffer.bytes[at] = static_cast<unsigned char>(at / kMarked % 251);
    }
    buffer.size = size;
  }
  for (auto& buffer : buffers) free(buffer.bytes);
  return 0;
}

TEST(Realloc, KeepsTheContentOfLongOnesThatGrow) { EXPECT_SCENARIO("long_ones_grow"); }

TEST(Realloc, OfNullAllocates) {
  for (const std::size_t size : sizes) {
    void* block = realloc(opaque<void*>(nullptr), size);
    ASSERT_NE(block, nullptr);
    fill(block, size, 2);
    void* array = resize_array(nullptr, size, 3);
    ASSERT_NE(array, nullptr);
    fill(array, size * 3, 3);
    EXPECT_TRUE(intact(block, size, 2));
    array = resize_array(array, size, 5);
    EXPECT_TRUE(intact(array, size * 3, 3));
    free(array);
    free(block);
  }
}

constexpr std::size_t kLarge = narrow ? 128 * MiB : 512 * MiB;

void touch(char* block, std::size_t size) {
  for (std::size_t at = 0; at < size; at += 4096) block[at] = static_cast<char>(at / 4096 % 127 + 1);
}

bool touched(const char* block, std::size_t size) {
  for (std::size_t at = 0; at < size; at += 4096)
    if (block[at] != static_cast<char>(at / 4096 % 127 + 1)) return false;
  return true;
}

// Large blocks on both sides leave no room to grow in place by luck.
SCENARIO(large_realloc) {
  void* before = malloc(20 * MiB);
  auto* block = static_cast<char*>(malloc(kLarge));
  void* after = malloc(20 * MiB);
  NEED(before && block && after);
  touch(block, kLarge);
  block = static_cast<char*>(realloc(block, kLarge + kLarge / 4));
  NEED(block);
  NEED(touched(block, kLarge));
  const std::size_t peak = peak_resident();
  NEED(peak < kLarge + kLarge / 4, "peak %zu MiB for a block of %zu MiB", peak / MiB, kLarge / MiB);

  block = static_cast<char*>(realloc(block, kLarge / 8));
  NEED(block);
  NEED(touched(block, kLarge / 8));
  NEED(eventually(5, [] { return resident() < kLarge / 4; }), "%zu MiB held after shrinking", resident() / MiB);
  free(block);
  free(before);
  free(after);
  return 0;
}

TEST(Realloc, OfALargeBlockDoesNotCopy) {
  if (!kMovesPages) GTEST_SKIP() << "this system moves no pages";
  EXPECT_SCENARIO("large_realloc");
}

// Buffers that are filled and cut to what they hold: what is cut off serves the next, or goes back, all the while.
SCENARIO(buffers_are_cut) {
  constexpr std::size_t kWhole = 2 * MiB, kPart = 300 * KiB, kCount = narrow ? 100 : 300;
  const std::size_t before = resident();
  std::vector<char*> buffers;
  for (std::size_t at = 0; at < kCount; ++at) {
    auto* buffer = static_cast<char*>(malloc(kWhole));
    NEED(buffer);
    touch(buffer, kWhole);
    buffer = static_cast<char*>(realloc(buffer, kPart));
    NEED(buffer && touched(buffer, kPart));
    buffers.push_back(buffer);
  }
  const std::size_t peak = peak_resident() - before, live = kCount * kPart;
  NEED(peak < 2 * live + 8 * MiB, "peak %zu MiB for %zu", peak / MiB, live / MiB);
  for (char* buffer : buffers) free(buffer);
  return 0;
}

TEST(Realloc, WhatIsCutOffIsNotHeld) {
  if (!on_reheap()) GTEST_SKIP() << "asked of reheap alone: not all C libraries' heaps do so";
  EXPECT_SCENARIO("buffers_are_cut");
}

}  // namespace
