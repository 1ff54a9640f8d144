// Classes that are hardly used are served by others.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "heap/idle.h"
#include "heap/lending.h"
#include "support/heaps.h"

namespace rh {
namespace {

SizeClass class_of(const void* block) { return slab::class_of(slab_of(block)); }

TEST(Lending, FewBlocksOfManySizesLieInFewPages) {
  std::set<uintptr_t> pages;
  for (size_t index = 0; size_class::size_of(index) <= 1024; ++index) {
    size_t size = size_class::size_of(index);
    void* block = allocate(size);
    ASSERT_GE(usable_size(block, "test"), size);
    ASSERT_LE(usable_size(block, "test"), size < 64 ? 64 : 2 * size);
    pages.insert(address_of(block) / 4096);
  }
  EXPECT_LE(pages.size(), 8u);  // for 32 classes
}

TEST(Lending, EndsWithAPagesWorth) {
  for (size_t size : {16u, 48u, 80u, 144u, 576u, 1152u}) {
    SizeClass own = size_class::computed(size), lender = size_class::lender_of(own);
    for (unsigned count = 0; count < lending::most_lent(lender); ++count) ASSERT_EQ(class_of(allocate(size)), lender);
    for (unsigned count = 0; count < 1000; ++count) ASSERT_EQ(class_of(allocate(size)), own) << size;
  }
}

TEST(Lending, LargerBlocksAreOfTheirOwnClass) {
  for (size_t size : {2304u, 4096u, 5000u, 32768u}) EXPECT_EQ(class_of(allocate(size)), size_class::of(size));
}

// A heap that was taken over brings slabs.
TEST(Lending, WhoHasASlabDoesNotBorrow) {
  Actor a, b;
  std::vector<void*> blocks = a([] {
    std::vector<void*> taken;
    for (int count = 0; count < 2000; ++count) taken.push_back(allocate(48));
    return taken;
  });
  a([&] {
    for (size_t index = 1000; index < 2000; ++index) deallocate(blocks[index]);
  });
  a.end();
  b([] { EXPECT_EQ(class_of(allocate(48)), size_class::computed(48)); });
}

TEST(Lending, BlocksAreClearedAndAligned) {
  for (size_t size : {16u, 40u, 100u, 192u, 700u}) {
    std::vector<void*> blocks;
    for (int round = 0; round < 3; ++round) {
      for (int count = 0; count < 100; ++count) {
        blocks.push_back(allocate_zeroed(size));
        ASSERT_TRUE(all_zero(blocks.back(), size));
        fill(blocks.back(), size, 1);
      }
      free_all(blocks);
      blocks.clear();
    }
    void* aligned = allocate_aligned(64, size);
    EXPECT_EQ(address_of(aligned) % 64, 0u);
  }
}

// However often it lent; all of what it gave was freed.
TEST(Lending, LeavesTheLenderSeldomUsed) {
  for (int round = 0; round < 3; ++round) {
    for (size_t size : {144u, 160u, 176u, 192u, 208u, 224u, 240u, 256u}) {
      std::vector<void*> blocks;
      for (int count = 0; count < 5; ++count) blocks.push_back(allocate(size));
      free_all(blocks);
    }
  }
  EXPECT_EQ(figures().in_use, 0u);
}

}  // namespace
}  // namespace rh
