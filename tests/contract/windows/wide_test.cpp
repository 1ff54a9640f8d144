// A 32-bit program that may use all four gibibytes: Wine's VirtualQuery tells of nothing in the last of them.
#include <gtest/gtest.h>

#include <cstdlib>

#include "address_space.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

std::size_t fill_and_free() {
  Blocks blocks;
  std::size_t count = 0;
  while (blocks.keep(malloc(MiB))) ++count;
  blocks.free_all_but(0);
  return count;
}

SCENARIO(filled_three_times) {
  const std::size_t first = fill_and_free();
  NEED(first > 2500, "only %zu MiB could be had", first);
  for (int round = 2; round <= 3; ++round) {
    const std::size_t again = fill_and_free();
    NEED(again + first / 16 >= first, "%zu MiB at first, %zu in round %d", first, again, round);
  }
  return 0;
}

TEST(Wide, WhatFilledTheLastGibibyteIsThereAgain) { EXPECT_SCENARIO("filled_three_times"); }

}  // namespace
