// Pointers from another allocator, passed to our free, realloc and the like, go to the allocator that made them.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "support/library.h"
#include "support/names.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

const std::size_t sizes[] = {0, 1, 24, 100, 1000, 5000, 40000, 127 * KiB, 200 * KiB, 3 * MiB, 40 * MiB};

TEST(Foreign, AreNotMadeByUs) {
  if (!on_reheap()) GTEST_SKIP() << "there they are the heap's own";
  for (const Maker& maker : foreign_makers()) {
    void* block = maker.make(100);
    EXPECT_FALSE(CONTRACT_FIND(rh_owns)(block)) << maker.call;
    free(block);
  }
}

TEST(Foreign, Free) {
  for (const auto& [call, make] : foreign_makers()) {
    for (const std::size_t size : sizes) {
      void* block = make(size);
      ASSERT_NE(block, nullptr);
      fill(block, size, 1);
      errno = 4242;
      free(block);
      EXPECT_EQ(errno, 4242);
      ::operator delete(make(size));
      ::operator delete[](make(size), size);
    }
  }
}

TEST(Foreign, FreeOfAlignedBlocks) {
  for (std::size_t alignment = 16; alignment <= MiB; alignment *= 4) {
    for (const std::size_t size : sizes)
      for (const AlignedMaker& maker : foreign_aligned_makers()) maker.drop(maker.make(alignment, size));
  }
}

TEST(Foreign, ReallocKeepsTheContent) {
  for (const auto& [call, make] : foreign_makers()) {
    for (const std::size_t from : sizes) {
      for (const std::size_t to : {1, 100, 4000, 100000, 5000000}) {
        void* block = make(from);
        fill(block, from, 2);
        block = realloc(block, to);
        ASSERT_NE(block, nullptr);
        EXPECT_TRUE(intact(block, from < to ? from : to, 2)) << from << " to " << to;
        fill(block, to, 3);
        // Whichever allocator holds it now, it can continue to grow.
        block = resize_array(block, to, 2);
        ASSERT_NE(block, nullptr);
        EXPECT_TRUE(intact(block, to, 3));
        free(block);
      }
    }
  }
}

TEST(Foreign, ReallocToZeroAndToTooMuch) {
  for (const auto& [call, make] : foreign_makers()) {
    void* block = make(1000);
    fill(block, 1000, 4);
    errno = 0;
    EXPECT_EQ(realloc(opaque(block), opaque(SIZE_MAX / 2)), nullptr);
    if (c_library_is_strict()) EXPECT_EQ(errno, ENOMEM);
    EXPECT_TRUE(intact(block, 1000, 4));
    void* none = realloc(opaque(block), opaque<std::size_t>(0));
    EXPECT_EQ(none == nullptr, kReallocFrees);
    free(none);
  }
}

TEST(Foreign, UsableSize) {
  for (const auto& [call, make] : foreign_makers()) {
    for (const std::size_t size : sizes) {
      void* block = make(size);
      const std::size_t whole = usable(block);
      EXPECT_GE(whole, size);
      EXPECT_LE(whole, size + size / 8 + 8 * KiB);
      fill(block, whole, 5);
      free(block);
    }
  }
}

TEST(Foreign, ByThreadsThatMadeNone) {
  std::vector<void*> blocks;
  for (int at = 0; at < 2000; ++at) blocks.push_back(foreign_makers()[0].make(static_cast<std::size_t>(at) * 10));
  std::vector<std::thread> threads;
  for (std::size_t part = 0; part < 4; ++part) {
    threads.emplace_back([&, part] {
      for (std::size_t at = part; at < blocks.size(); at += 4)
        at % 8 < 4 ? free(blocks[at]) : free(realloc(blocks[at], 500));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The blocks are freed by their allocator, not merely ignored: 800 MB pass through.
SCENARIO(foreign_blocks_are_freed) {
  const std::size_t before = resident();
  for (int at = 0; at < rounds(100000); ++at) {
    auto* block = static_cast<char*>(foreign_makers()[0].make(8000));
    block[0] = block[4096] = 1;
    if (at % 3 == 0) block = static_cast<char*>(realloc(block, 9000));
    free(block);
  }
  NEED(resident() < before + 8 * MiB, "%zu KiB stay", (resident() - before) / KiB);
  return 0;
}

TEST(Foreign, AreFreedAndNotIgnored) { EXPECT_SCENARIO("foreign_blocks_are_freed"); }

}  // namespace
