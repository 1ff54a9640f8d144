// Where a bin's next blocks come from, and how many of them.
#include "heap/refill.h"

#include <gtest/gtest.h>

#include <vector>

#include "heap/heap.h"
#include "heap/idle.h"
#include "heap/slab_lists.h"
#include "support/heaps.h"

namespace rh {
namespace {

class Refill : public testing::TestWithParam<size_t> {
 protected:
  Refill() {
    while (blocks_.size() < 200 || !is_used_up()) blocks_.push_back(allocate(GetParam()));
  }
  ~Refill() override {
    for (void* block : blocks_) deallocate(block);
  }

  SizeClass size_class() const { return size_class::of(GetParam()); }
  Span* current() const { return own_heap()->current[size_class()]; }

  bool is_used_up() const { return !has_at_hand(own_heap(), size_class()) && slab::free_blocks(current()) == 0; }

  // The same block comes back.
  void replace(void* block) {
    deallocate(block);
    ASSERT_EQ(allocate(GetParam()), block);
    EXPECT_TRUE(is_used_up());
  }

  std::vector<void*> blocks_;
};

TEST_P(Refill, WhatIsFreedServesTheNextWhereThereIsNothingElse) {
  for (int round = 0; round < 3; ++round) {
    void* freed = blocks_[static_cast<size_t>(round) * 50];
    Span* slab = slab_of(freed);
    ASSERT_NE(current(), slab);
    const size_t refills = own_heap()->refills.value();
    replace(freed);
    EXPECT_EQ(current(), slab);
    EXPECT_EQ(own_heap()->refills.value() - refills, GetParam() <= size_class::kMostBinned ? 0u : 1u);
  }
}

// So that those that were freed later have time to become empty.
TEST_P(Refill, WhatWaitsLongestIsUsedFirst) {
  void *first = blocks_[0], *second = blocks_[50], *third = blocks_[100];
  deallocate(first);
  deallocate(second);
  EXPECT_EQ(allocate(GetParam()), first);
  deallocate(third);
  EXPECT_EQ(allocate(GetParam()), second);
  EXPECT_EQ(allocate(GetParam()), third);
}

// Though no slab becomes empty.
TEST_P(Refill, WhatWasFreedBeforeGoesBackInTime) {
  idle::set_decay_ms(100);
  fake::fail_all(fake::Call::start_helper, true);
  free_all(used_blocks(100000, 8 * kMiB));
  ASSERT_GT(g_arena.dirty_bytes(), kMiB);
  for (int round = 0; round < 20; ++round) {
    fake::advance(50);
    for (size_t count = 0; count < 16; ++count) replace(blocks_[count % 2 * 100]);  // of two slabs by turns
  }
  EXPECT_LE(g_arena.dirty_bytes(), kMiB);
}

// What was touched before is made into blocks many at a time, up to a page each; what was not is left untouched.
TEST(RefillAnew, WarmMemoryIsMadeIntoManyBlocks) {
  if (kHardened) GTEST_SKIP() << "one at a time there";
  constexpr size_t kSize = size_class::kMostBinned, kBlocks = 256;
  size_t refills[2];
  for (size_t& made : refills) {
    const size_t before = own_heap()->refills.value();
    std::vector<void*> blocks = used_blocks(kSize, kBlocks * kSize);
    made = own_heap()->refills.value() - before;
    free_all(blocks);
  }
  EXPECT_GE(refills[0], kBlocks / 2);
  EXPECT_LE(refills[1], kBlocks / 4);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Refill, testing::Values(1024, 4096, 20000));

// ---- what is not used ---------------------------------------------------------------------------

class Unused : public testing::Test {
 protected:
  static constexpr size_t kSize = 3000, kFrom = 12 << 20, kMore = 4 << 20;

  Unused() : much_(used_blocks(200, kFrom)) {
    for (int number = 0; number < 64; ++number) blocks_.push_back(allocate(kSize));
  }
  ~Unused() override {
    free_all(blocks_);
    free_all(much_);
  }

  void grow() {
    for (void* block : used_blocks(200, kMore)) much_.push_back(block);
  }
  Span* current() const { return own_heap()->current[size_class::computed(kSize)]; }

  std::vector<void*> much_, blocks_;
};

TEST_F(Unused, SlabsServeOtherClassesWhenTheHeapGrows) {
  free_all(blocks_);
  blocks_.clear();
  ASSERT_NE(current(), nullptr);
  grow();
  EXPECT_EQ(current(), nullptr);
  for (int number = 0; number < 64; ++number) blocks_.push_back(allocate(kSize));
  EXPECT_NE(current(), nullptr);
}

TEST_F(Unused, SlabsStayWhereTheHeapWasAsLargeBefore) {
  grow();
  free_all(much_);
  much_.clear();
  idle::trim();
  free_all(blocks_);
  blocks_.clear();
  Span* slab = current();
  ASSERT_NE(slab, nullptr);
  for (void* block : used_blocks(200, kFrom)) much_.push_back(block);
  EXPECT_EQ(current(), slab);
}

TEST_F(Unused, SlabsStayWhereABlockIsInUse) {
  void* last = blocks_.back();
  blocks_.pop_back();
  free_all(blocks_);
  blocks_ = {last};
  Span* slab = current();
  ASSERT_EQ(slab_of(last), slab);
  grow();
  EXPECT_EQ(current(), slab);
}

}  // namespace
}  // namespace rh
