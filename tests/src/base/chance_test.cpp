#include "base/chance.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rh {
namespace {

TEST(Chance, LogarithmsAreThose) {
  for (double x : {1.0, 0.999, 0.75, 0.5, 0.1, 1e-3, 1e-10, 0x1p-53})
    EXPECT_NEAR(chance::natural_logarithm(x), std::log(x), 1e-14 * (1 - std::log(x))) << x;
}

TEST(Chance, SharesAreThose) {
  for (uint64_t every : {1ull, 7ull, 4096ull, 524288ull, 1ull << 40})
    for (uint64_t size : {1ull, 2ull, 16ull, 1000ull, 100000ull, 1ull << 24, 1ull << 40, 1ull << 62}) {
      const double real = -std::expm1(-static_cast<double>(size) / static_cast<double>(every));
      EXPECT_NEAR(chance::chosen_share(size, every) / real, 1, 1e-12) << size << " of " << every;
    }
}

TEST(Chance, GapsHaveTheMeanAndTheSpreadOfTheirDistribution) {
  constexpr int kDraws = 200000;
  constexpr double kEvery = 1000;
  uint64_t random = 1;
  double sum = 0, squares = 0;
  int above = 0;
  for (int i = 0; i != kDraws; ++i) {
    const auto gap = static_cast<double>(chance::draw(random, 1000));
    ASSERT_GE(gap, 1);
    sum += gap, squares += gap * gap, above += gap > kEvery;
  }
  const double mean = sum / kDraws;
  EXPECT_NEAR(mean, kEvery, 10);
  EXPECT_NEAR(std::sqrt(squares / kDraws - mean * mean), kEvery, 15);
  EXPECT_NEAR(above, kDraws * std::exp(-1), 1000);
}

TEST(Chance, OfOneInOneEveryByteIsChosen) {
  uint64_t random = 1;
  double sum = 0;
  for (int i = 0; i != 1000; ++i) sum += static_cast<double>(chance::draw(random, 1));
  EXPECT_LT(sum, 2000);
}

}  // namespace
}  // namespace rh
