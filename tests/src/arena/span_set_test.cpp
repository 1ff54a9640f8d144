#include "arena/span_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace rh {
namespace {

// By length, then address: the order of large spans.
struct Before {
  bool operator()(const Span* a, const Span* b) const { return a->units != b->units ? a->units < b->units : a < b; }
};
using Model = std::set<Span*, Before>;

Span* shortest(const Model& model, size_t units) {
  for (Span* span : model) {
    if (span->units >= units) return span;
  }
  return nullptr;
}

constexpr size_t kListed = 64;  // lengths below this are kept in lists, in any order

void expect_best_fit(const SpanSet& set, const Model& model, size_t units) {
  Span* got = set.best_fit(Units{units});
  Span* expected = shortest(model, units);
  ASSERT_EQ(got == nullptr, expected == nullptr) << units;
  if (got == nullptr) return;
  ASSERT_EQ(got->units, expected->units) << units;
  ASSERT_TRUE(model.count(got));
  if (got->units >= kListed) {
    ASSERT_EQ(got, expected) << units;
  }
}

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
  std::vector<Span> spans(600);
  std::vector<Span*> outside;
  for (Span& span : spans) outside.push_back(&span);
  SpanSet set;
  Model model;
  size_t total = 0;
  // Few lengths, so that many are equal, and around the border between lists and tree; now and then any other length.
  auto length = [&] { return 1 + random() % (random() % 8 == 0 ? 100000 : 90); };
  for (int step = 0; step < 40000; ++step) {
    bool insert = model.empty() || (!outside.empty() && random() % 100 < (step / 5000 % 2 ? 40 : 60));
    if (insert) {
      std::swap(outside[random() % outside.size()], outside.back());
      Span* span = outside.back();
      outside.pop_back();
      span->units = static_cast<uint32_t>(length());
      set.insert(span);
      model.insert(span);
      total += span->units;
    } else {
      Span* span = shortest(model, length());
      if (span == nullptr) span = *model.begin();
      model.erase(span);
      set.remove(span);
      outside.push_back(span);
      total -= span->units;
    }
    ASSERT_EQ(set.total().count, total);
    expect_best_fit(set, model, length());
    if (HasFatalFailure()) return;
  }
  while (!model.empty()) {
    Span* span = set.best_fit(Units{1});
    ASSERT_TRUE(model.erase(span));
    set.remove(span);
  }
  EXPECT_EQ(set.total(), Units{0});
  EXPECT_EQ(set.best_fit(Units{1}), nullptr);
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
