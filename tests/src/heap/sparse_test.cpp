// Slabs of which little is in use give their free pages back.
#include "heap/sparse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "heap/idle.h"
#include "heap/shared.h"
#include "support/heaps.h"

namespace rh {
namespace {

constexpr size_t kUnitsTaken = 256;

// A page of four stays for the survivor, and another for the block that was freed last.
constexpr size_t kMostOfIt = kUnitsTaken * kUnitSize * 7 / 16;

// Of as many blocks as fill that many units the first of each unit stays.
struct Survivors {
  size_t size;
  std::vector<void*> blocks;

  explicit Survivors(size_t of_size, Heap* heap = nullptr) : size(of_size) {
    std::vector<void*> all;
    for (size_t taken = 0; taken < kUnitsTaken * kUnitSize; taken += size)
      all.push_back(heap == nullptr ? allocate(size) : allocate_in(heap, kBlockAlign, size, false));
    for (size_t index = 0; index < all.size(); ++index) fill(all[index], size, static_cast<unsigned>(index));
    size_t step = kUnitSize / size;
    for (size_t index = 0; index < all.size(); ++index)
      if (index % step == 0)
        blocks.push_back(all[index]);
      else
        deallocate(all[index]);
  }

  void check() const {
    for (size_t index = 0; index < blocks.size(); ++index)
      ASSERT_TRUE(intact(blocks[index], size, static_cast<unsigned>(index * (kUnitSize / size))));
  }
};

class Sparse : public testing::Test {
 protected:
  void SetUp() override {
    if (!platform::kReplacesByZeros) GTEST_SKIP() << "no page of a slab goes back here";
  }
};

class OfSize : public Sparse, public testing::WithParamInterface<size_t> {};

TEST_P(OfSize, FreePagesGoBackWhileTheRestIsInUse) {
  idle::set_decay_ms(1000);
  Survivors survivors(GetParam());
  ASSERT_TRUE(fake::helper_is_there());
  step_for(700);
  EXPECT_EQ(sparse::returned(), 0u) << "not before its time";
  step_for(10000);
  EXPECT_FALSE(fake::helper_is_there()) << "there is nothing left to do";
  EXPECT_GE(sparse::returned(), kMostOfIt);
  survivors.check();
  Survivors again(GetParam());
  survivors.check();
  again.check();
}

INSTANTIATE_TEST_SUITE_P(Sizes, OfSize, testing::Values(16, 64, 256, 1000, 2048, 4096));

TEST_F(Sparse, AFirstClassHeapsGoBackToo) {
  Heap* heap = shared::create();
  Survivors survivors(256, heap);
  step_for(20000);
  EXPECT_FALSE(fake::helper_is_there());
  EXPECT_GE(sparse::returned(), kMostOfIt);
  survivors.check();
  destroy_heap(heap);
}

// Nobody looks at them for a minute.
TEST_F(Sparse, WhoGrowsBesideMuchReturnsIt) {
  idle::set_decay_ms(60000);
  Survivors survivors(256);
  EXPECT_EQ(sparse::returned(), 0u);
  Survivors others(1000);
  EXPECT_GE(sparse::returned(), kMostOfIt);
  survivors.check();
  others.check();
}

TEST_F(Sparse, AFirstClassHeapThatGrowsReturnsItToo) {
  idle::set_decay_ms(60000);
  Heap* heap = shared::create();
  Survivors survivors(256, heap), others(1000, heap);
  EXPECT_GE(sparse::returned(), kMostOfIt);
  survivors.check();
  others.check();
  destroy_heap(heap);
}

TEST_F(Sparse, WhoUsesThemAgainKeepsThem) {
  idle::set_decay_ms(60000);
  Survivors survivors(256), again(256);
  EXPECT_EQ(sparse::returned(), 0u);
}

TEST_F(Sparse, TrimReturnsThemAtOnce) {
  Survivors survivors(128);
  size_t before = sparse::returned();
  size_t trimmed = idle::trim();
  EXPECT_GE(sparse::returned() - before, kMostOfIt);
  EXPECT_GE(trimmed, sparse::returned() - before);
  EXPECT_EQ(idle::trim(), 0u);
  survivors.check();
}

// What the thread waits for may come meanwhile.
TEST_F(Sparse, AWaitReturnsAFewAtATime) {
  fake::set_single_threaded(true);
  idle::let_waits_return();
  const Survivors survivors[] = {Survivors(64), Survivors(128), Survivors(256), Survivors(512)};
  ASSERT_TRUE(idle::returns_before_waiting());
  size_t most = 0;
  for (bool more = true; more;) {
    const size_t before = sparse::returned();
    more = idle::return_while_waiting();
    most = std::max(most, sparse::returned() - before);
  }
  EXPECT_GE(sparse::returned(), std::size(survivors) * kMostOfIt);
  EXPECT_LE(most, sparse::returned() / 2);
  EXPECT_FALSE(idle::returns_before_waiting());
  for (const Survivors& each : survivors) each.check();
}

TEST_F(Sparse, SlabsWithHolesAreTakenFromLast) {
  Survivors survivors(512);
  idle::trim();
  auto with_holes = [&] {
    return std::count_if(survivors.blocks.begin(), survivors.blocks.end(),
                         [](void* block) { return slab::has_holes(slab_of(block)); });
  };
  EXPECT_GE(with_holes(), static_cast<long>(kUnitsTaken) - 2);
  free_all(used_blocks(512, 20 * kUnitSize));
  long before = with_holes();
  EXPECT_LE(before, static_cast<long>(kUnitsTaken) - 15);
  free_all(used_blocks(512, 20 * kUnitSize));
  EXPECT_GE(with_holes(), before - 1) << "what was filled is at hand";
  survivors.check();
}

TEST_F(Sparse, AHeapLeftBehindKeepsItsHoles) {
  Actor gone, heir;
  Survivors* left = gone([] { return new Survivors(96); });
  idle::trim();
  EXPECT_GE(sparse::returned(), kMostOfIt);
  gone.end();
  heir([&] {
    Survivors own(96);
    left->check();
    free_all(left->blocks);
    own.check();
    free_all(own.blocks);
  });
  idle::trim();
  EXPECT_LE(figures().in_use, 64 * 1024u);
  delete left;
}

}  // namespace
}  // namespace rh
