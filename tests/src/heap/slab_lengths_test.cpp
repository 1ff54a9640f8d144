// A class that is used little has short slabs.
#include <gtest/gtest.h>

#include <vector>

#include "heap/shared.h"
#include "support/heaps.h"

namespace rh {
namespace {

Units length(const Span* slab) { return Units{slab->units}; }

class SlabLengths : public testing::TestWithParam<size_t> {
 protected:
  SizeClass size_class() const { return size_class::computed(GetParam()); }
  Units least() const { return size_class::shortest_slab(size_class()); }
  Units most() const { return Units{size_class::kProperties[size_class()].units}; }

  // Of the heap, or the thread's. The slabs that hold so many blocks, in the order in which they came.
  std::vector<Span*> slabs_of(unsigned count, Heap* heap = nullptr) {
    std::vector<Span*> slabs;
    for (; count != 0; --count) {
      void* block = heap == nullptr ? allocate(GetParam()) : allocate_in(heap, kBlockAlign, GetParam(), false);
      if (block == nullptr) break;
      if (slabs.empty() || slabs.back() != slab_of(block)) slabs.push_back(slab_of(block));
    }
    return slabs;
  }
};

TEST_P(SlabLengths, EachIsLongerThanTheOneBeforeIt) {
  Units expected = least();
  for (const Span* slab : slabs_of(1000)) {
    ASSERT_EQ(length(slab), expected);
    expected = most() < expected + least() ? most() : expected + least();
  }
  EXPECT_EQ(expected, most());
}

TEST_P(SlabLengths, TheyHoldAsManyBlocksAsThereIsRoomFor) {
  for (const Span* slab : slabs_of(1000)) {
    const unsigned room = slab::capacity(slab);
    ASSERT_GE(room, 1u);
    ASSERT_LE(room * GetParam(), length(slab).bytes() - kSlabGuard);
    ASSERT_GT((room + 1) * GetParam(), length(slab).bytes() - kSlabGuard);
  }
}

// As at a limit, so where memory is short.
TEST_P(SlabLengths, WhereALongerOneIsNotToBeHadTheShortestIs) {
  Heap* heap = shared::create();
  heap->account.set_limit(4 * least().bytes());
  std::vector<Span*> slabs = slabs_of(1000, heap);
  ASSERT_EQ(slabs.size(), 3u);
  EXPECT_LT(length(slabs[0]), length(slabs[1]));
  EXPECT_EQ(length(slabs[2]), least());
  EXPECT_EQ(heap->account.held(), heap->account.limit());
  EXPECT_EQ(heap->account.refused(), 1u);
  destroy_heap(heap);
}

INSTANTIATE_TEST_SUITE_P(Sizes, SlabLengths, testing::Values(2304, 5120, 9216, 15360, 20480, 30720, 32768));

}  // namespace
}  // namespace rh
