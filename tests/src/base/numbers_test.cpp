#include <gtest/gtest.h>

#include <set>

#include "base/bits.h"
#include "base/counter.h"
#include "base/units.h"

namespace rh {
namespace {

TEST(Bits, PowersOfTwo) {
  EXPECT_FALSE(is_power_of_two(0));
  for (size_t bit = 0; bit < sizeof(size_t) * 8; ++bit) {
    size_t power = size_t{1} << bit;
    EXPECT_TRUE(is_power_of_two(power));
    EXPECT_EQ(is_power_of_two(power + 1), power == 1);
    EXPECT_EQ(highest_bit(power), bit);
    EXPECT_EQ(highest_bit(power | 1), bit);
    EXPECT_EQ(highest_bit(power - 1 + power), bit);
  }
}

TEST(Bits, BothHalvesOfAProductAreFolded) {
  constexpr uint64_t kMost = UINT64_MAX;
  EXPECT_EQ(folded_product_by_parts(kMost, kMost), kMost);  // ...fffe and ...0001
  EXPECT_EQ(folded_product_by_parts(kMost, 0), 0u);
  EXPECT_EQ(folded_product_by_parts(uint64_t{1} << 63, 6), 3u);
  uint64_t one = 1, other = 2;
  for (int count = 0; count < 10000; ++count) {
    one = mix(one + other);
    other = mix(other);
    ASSERT_EQ(folded_product(one, other), folded_product_by_parts(one, other)) << one << ' ' << other;
  }
}

TEST(Bits, AlignsToPowersOfTwo) {
  for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
    for (uintptr_t value = 0; value < 10000; value += 7) {
      EXPECT_EQ(align_down(value, alignment), value / alignment * alignment);
      EXPECT_EQ(align_up(value, alignment), (value + alignment - 1) / alignment * alignment);
    }
  }
  EXPECT_EQ(align_down(UINTPTR_MAX, 4096), UINTPTR_MAX - 4095);
  EXPECT_EQ(align_up(UINTPTR_MAX - 4095, 4096), UINTPTR_MAX - 4095);
}

TEST(Bits, DividesUpWithoutOverflow) {
  EXPECT_EQ(divide_up(0, 7), 0u);
  EXPECT_EQ(divide_up(1, 7), 1u);
  EXPECT_EQ(divide_up(7, 7), 1u);
  EXPECT_EQ(divide_up(8, 7), 2u);
  EXPECT_EQ(divide_up(SIZE_MAX, SIZE_MAX), 1u);
  EXPECT_EQ(divide_up(SIZE_MAX, 2), SIZE_MAX / 2 + 1);
}

TEST(Bits, MixesRegularNumbersApart) {
  std::set<uint64_t> top_bytes;
  for (uint64_t value = 1; value <= 4096; ++value) top_bytes.insert(mix(value * 64) >> 56);
  EXPECT_EQ(top_bytes.size(), 256u);
}

TEST(Units, HoldWhatTheyMust) {
  EXPECT_EQ(Units::holding(0).count, 0u);
  EXPECT_EQ(Units::holding(1).count, 1u);
  EXPECT_EQ(Units::holding(kUnitSize).count, 1u);
  EXPECT_EQ(Units::holding(kUnitSize + 1).count, 2u);
  EXPECT_EQ(Units::holding(SIZE_MAX).count, SIZE_MAX / kUnitSize + 1);
  EXPECT_EQ(Units{3}.bytes(), 3 * kUnitSize);
}

TEST(Units, Count) {
  Units units{5};
  units += Units{2};
  units -= Units{3};
  EXPECT_EQ(units, Units{4});
  EXPECT_EQ(units + Units{1} - Units{2}, Units{3});
  EXPECT_TRUE(units < Units{5});
  EXPECT_TRUE(units > Units{3});
}

TEST(Counter, Counts) {
  Counter counter;
  counter.add(7);
  counter.subtract(2);
  EXPECT_EQ(counter.value(), 5u);
  counter.set(1);
  EXPECT_EQ(counter.value(), 1u);
}

}  // namespace
}  // namespace rh
