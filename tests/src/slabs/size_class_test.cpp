#include "slabs/size_class.h"

#include <gtest/gtest.h>

namespace rh::size_class {
namespace {

// The smallest class that holds the size, by linear search.
size_t searched(size_t size) {
  size_t index = 0;
  while (size_of(index) < size) ++index;
  return index;
}

TEST(SizeClass, EverySizeHasItsSmallestClass) {
  for (size_t size = 1; size <= kMaxSmall; ++size) {
    ASSERT_EQ(computed(size), searched(size)) << size;
    ASSERT_EQ(of(size), searched(size <= 4032 || size > 4096 ? size : 4160)) << size;
  }
  EXPECT_EQ(of(0), 0u);
}

// Their beginnings would all lie in one set of a processor's cache.
TEST(SizeClass, BlocksOfAboutAPageDoNotLieAPageApart) {
  for (size_t size = 3900; size <= 4400; ++size) ASSERT_EQ(size_of(of(size)) / 64 % 2, 1u) << size;
}

TEST(SizeClass, SizesGrowAndRoundingCostsAnEighthAtMost) {
  for (size_t index = 1; index < kCount; ++index) {
    size_t step = size_of(index) - size_of(index - 1);
    ASSERT_GT(step, 0u);
    ASSERT_EQ(size_of(index) % kBlockAlign, 0u);
    if (size_of(index) > kLinearMax) ASSERT_LE(step * 8, size_of(index)) << size_of(index);
  }
  EXPECT_EQ(size_of(0), kBlockAlign);
  EXPECT_EQ(size_of(kCount - 1), kMaxSmall);
}

TEST(SizeClass, AKibibyteAndAHeaderIsRoundedByASixteenthAtMost) {
  for (size_t size = 1024; size < 2048; size += kBlockAlign) ASSERT_LE(size_of(of(size)) - size, 1024u / 16) << size;
}

TEST(SizeClass, APageAndAHeaderIsRoundedByATwelfthAtMost) {
  for (size_t size = 4096; size <= 4416; ++size) ASSERT_LE((size_of(of(size)) - size) * 12, size) << size;
}

TEST(SizeClass, TheTableOfPropertiesTellsTheTruth) {
  for (size_t index = 0; index < kCount; ++index) {
    const Properties& own = kProperties[index];
    size_t bytes = Units{own.units}.bytes();
    ASSERT_EQ(own.size, size_of(index));
    ASSERT_EQ(own.capacity, bytes / own.size);
    ASSERT_LE(own.units, kMostUnits.count);
    ASSERT_GE(own.capacity, own.size <= 8192 ? 8 : 4) << own.size;
    ASSERT_LE(bytes - own.capacity * size_t{own.size}, bytes / 32) << own.size;
    ASSERT_GE(own.carve, 1);
    ASSERT_LE(own.carve * size_t{own.size}, own.size < 4096 ? 4096u : own.size) << own.size;
    ASSERT_GE(own.worth, 1);
    ASSERT_LE(own.worth, own.capacity);
    // The countdown of a slab never reaches 0 by itself.
    ASSERT_LT(own.capacity, UINT16_MAX / 2);
  }
}

TEST(SizeClass, NoShorterSlabWouldDo) {
  for (size_t index = 0; index < kCount; ++index) {
    for (Units units{1}; units < Units{kProperties[index].units}; units += Units{1}) {
      size_t capacity = units.bytes() / size_of(index);
      bool enough = capacity >= (size_of(index) <= 8192 ? 8 : 4);
      bool thrifty = units.bytes() % size_of(index) <= units.bytes() / 32;
      ASSERT_FALSE(enough && thrifty) << size_of(index);
    }
  }
}

TEST(SizeClass, EveryAlignmentOfEverySize) {
  for (size_t alignment = 1; alignment <= kUnitSize; alignment *= 2) {
    for (size_t size = 0; size <= kMaxSmall; ++size) {
      size_t index = aligned(size, alignment);
      // The smallest that fits, by linear search.
      size_t expected = size == 0 ? 0 : alignment <= kBlockAlign ? of(size) : searched(size);
      while (expected < kCount && size_of(expected) % alignment != 0) ++expected;
      ASSERT_EQ(index, expected) << size << " aligned to " << alignment;
      // So every block is aligned: slabs start at multiples of a unit.
      if (index < kCount) {
        ASSERT_EQ(size_of(index) % alignment, 0u);
        ASSERT_GE(size_of(index), size);
      }
    }
  }
}

TEST(SizeClass, EveryOffsetOfEverySlabHasItsPosition) {
  for (size_t index = 0; index < kCount; ++index) {
    size_t size = size_of(index);
    for (size_t offset = 0; offset < kMostUnits.bytes(); offset += kBlockAlign) {
      Position found = position(static_cast<SizeClass>(index), offset);
      ASSERT_EQ(found.index, offset / size) << size << " at " << offset;
      ASSERT_EQ(found.is_start, offset % size == 0) << size << " at " << offset;
    }
    for (size_t within = 1; within < kBlockAlign; ++within)
      ASSERT_FALSE(position(static_cast<SizeClass>(index), size + within).is_start);
  }
}

}  // namespace
}  // namespace rh::size_class
