#include "arena/span_set.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "support/span_set_player.h"

namespace rh {
namespace {

TEST(SpanSet, AnEmptySetHasNothing) {
  SpanSet set;
  for (size_t units : {1u, 63u, 64u, 1000000u}) EXPECT_EQ(set.best_fit(Units{units}), nullptr);
  EXPECT_EQ(set.total(), Units{0});
}

TEST(SpanSet, FindsTheShortestThatFits) {
  std::vector<Span> spans(5);
  const uint32_t lengths[] = {3, 63, 64, 65, 4000};
  SpanSet set;
  for (size_t index = 0; index < spans.size(); ++index) {
    spans[index].units = lengths[index];
    set.insert(&spans[index]);
  }
  for (size_t units = 1; units <= 4000; ++units) {
    size_t index = 0;
    while (lengths[index] < units) ++index;
    ASSERT_EQ(set.best_fit(Units{units}), &spans[index]) << units;
  }
  EXPECT_EQ(set.best_fit(Units{4001}), nullptr);
}

TEST(SpanSet, AmongTheLargeTheLowestAddressComesFirst) {
  std::vector<Span> spans(300);
  SpanSet set;
  for (Span& span : spans) span.units = 70;
  for (size_t step = 0; step < spans.size(); ++step) set.insert(&spans[step * 7 % spans.size()]);
  for (Span& span : spans) {
    ASSERT_EQ(set.best_fit(Units{66}), &span);
    set.remove(&span);
  }
  EXPECT_EQ(set.best_fit(Units{1}), nullptr);
}

class SpanSetModel : public testing::TestWithParam<uint32_t> {};

TEST_P(SpanSetModel, AgreesUnderRandomUse) {
  std::mt19937 random(GetParam());
  std::vector<uint8_t> decisions(200'000);
  for (uint8_t& byte : decisions) byte = static_cast<uint8_t>(random());
  SpanSetPlayer(Input(decisions.data(), decisions.size())).play();
}

INSTANTIATE_TEST_SUITE_P(Seeds, SpanSetModel, testing::Range(1u, 4u));

TEST(SpanList, KeepsItsOrder) {
  std::vector<Span> spans(5);
  SpanList list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.pop_front(), nullptr);
  list.push_back(&spans[1]);
  list.push_back(&spans[2]);
  list.push_front(&spans[0]);
  list.push_back(&spans[3]);
  list.push_back(&spans[4]);
  list.remove(&spans[2]);  // in the middle
  list.remove(&spans[0]);  // the first
  list.remove(&spans[4]);  // the last
  EXPECT_EQ(list.first(), &spans[1]);
  EXPECT_EQ(list.last(), &spans[3]);
  EXPECT_EQ(list.pop_front(), &spans[1]);
  EXPECT_EQ(list.pop_front(), &spans[3]);
  EXPECT_TRUE(list.empty());
  list.push_front(&spans[2]);
  EXPECT_EQ(list.last(), &spans[2]);
}

}  // namespace
}  // namespace rh
