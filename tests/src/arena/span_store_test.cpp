#include "arena/span_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <vector>

#include "platform/fake/fake.h"
#include "support/huge_pages.h"
#include "support/pages.h"

namespace rh {
namespace {

constexpr ThreadToken kCaller = 7;

// Stores know of their heaps only where these lie.
Heap* heap(uintptr_t number) { return reinterpret_cast<Heap*>(number * 64); }

struct Store : SpanStore {
  explicit Store(uintptr_t number) : owner(heap(number)) {}
  Span* take(size_t units, Use use = Use::block) { return SpanStore::take({units}, use, owner, kCaller); }
  void give(Span* span, Use use = Use::block) { SpanStore::give(span, use, owner, kCaller); }
  bool lengthen(Span* span, size_t to) { return SpanStore::lengthen(span, {to}, owner); }
  Heap* owner;
};

size_t in_use() { return g_arena.figures().in_use / kUnitSize; }
size_t spans_taken() { return g_arena.figures().spans_taken; }

// Visits of two stores in turn let both grow.
void contend(Store& one, Store& other) {
  std::vector<Span*> spans;
  for (int round = 0; round < 400; ++round) {
    spans.push_back(one.take(9));
    spans.push_back(other.take(9));
  }
  for (size_t index = 0; index < spans.size(); ++index) (index % 2 == 0 ? one : other).give(spans[index]);
}

TEST(SpanStore, GivesWhatIsAskedForAndKeepsALittle) {
  Store store(1);
  Span* span = store.take(3);
  ASSERT_NE(span, nullptr);
  EXPECT_EQ(span->units, 3u);
  EXPECT_EQ(span->kind.load(), SpanKind::none);
  EXPECT_EQ(span->owner.load(), nullptr);
  EXPECT_EQ(in_use(), 3 + store.total().count);
  store.give(span);
  EXPECT_LE(store.total().count, SpanStore::kLeastBudget.count);
  store.empty(kCaller);
  EXPECT_EQ(store.total(), Units{});
  EXPECT_EQ(in_use(), 0u);
}

TEST(SpanStore, ServesAgainWithoutTheArena) {
  Store store(1);
  Span* span = store.take(4);
  store.give(span);
  size_t taken = spans_taken();
  EXPECT_EQ(store.take(2), span);
  EXPECT_EQ(store.take(2), span + 2);
  EXPECT_EQ(spans_taken(), taken);
}

TEST(SpanStore, NeighboursBecomeOne) {
  Store store(1);
  Span* spans[4];
  for (Span*& span : spans) span = store.take(1);
  for (int index : {0, 2, 1}) store.give(spans[index]);
  EXPECT_EQ(spans[0]->kind.load(), SpanKind::kept);
  EXPECT_EQ(spans[0]->units, 3u);
  EXPECT_EQ(spans[2]->kind.load(), SpanKind::kept_tail);
  EXPECT_EQ(spans[1]->owner.load(), nullptr);
  EXPECT_TRUE(store.is_valid());
}

TEST(SpanStore, WhatLiesBesideItInAnotherStoreStaysThere) {
  Store one(1), other(2);
  Span* low = one.take(2);
  Span* high = one.take(2);
  ASSERT_EQ(high, low + 2);
  one.give(low);
  other.give(high);
  EXPECT_EQ(low->units, 2u);
  EXPECT_EQ(high->units, 2u);
  EXPECT_EQ(one.take(2), low);
  EXPECT_EQ(other.take(2), high);
}

TEST(SpanStore, LongSpansPassBy) {
  Store store(1);
  Span* small = store.take(1);
  store.give(small);
  size_t kept = store.total().count;
  Span* span = store.take(40);
  store.give(span);
  EXPECT_LE(store.total().count, kept);
  EXPECT_EQ(span->kind.load(), SpanKind::free_dirty);
}

TEST(SpanStore, AloneItStaysSmall) {
  Store store(1);
  std::vector<Span*> spans;
  for (int round = 0; round < 1000; ++round) spans.push_back(store.take(9));
  for (Span* span : spans) store.give(span);
  EXPECT_EQ(store.budget(), SpanStore::kLeastBudget);
  EXPECT_LE(in_use(), SpanStore::kLeastBudget.count);
}

TEST(SpanStore, WhereOthersComeTooItGrowsAndVisitsSeldom) {
  Store one(1), other(2);
  std::vector<Span*> live;
  for (int count = 0; count < 64; ++count) live.push_back(one.take(9));
  contend(one, other);
  EXPECT_GT(one.budget(), SpanStore::kLeastBudget);
  size_t taken = spans_taken();
  for (int round = 0; round < 1000; ++round) {
    Span*& span = live[static_cast<size_t>(round * 7) % live.size()];
    one.give(span);
    span = one.take(9);
  }
  EXPECT_EQ(spans_taken(), taken);
  one.empty(kCaller);
  EXPECT_EQ(one.budget(), SpanStore::kLeastBudget);
}

TEST(SpanStore, ItsBudgetIsAFractionOfWhatItsHeapHas) {
  Store one(1), other(2);
  for (int round = 0; round < 200; ++round) {
    one.give(one.take(20));
    other.give(other.take(20));
  }
  EXPECT_LE((one.total() + other.total()).count, 2 * SpanStore::kLeastBudget.count);
}

TEST(SpanStore, ItsBudgetFallsWithWhatItsHeapHas) {
  Store one(1), other(2);
  std::vector<Span*> live;
  for (int count = 0; count < 100; ++count) live.push_back(one.take(9));
  contend(one, other);
  ASSERT_GT(one.budget().count, 50u);
  for (Span* span : live) one.give(span);
  EXPECT_LT(one.total().count, 100u) << "of 900 units";
}

// Each of them has taken 18 MiB, and visits as often as the others.
void crowd(std::deque<Store>& stores) {
  std::vector<std::vector<Span*>> live(stores.size());
  for (int round = 0; round < 128; ++round)
    for (size_t index = 0; index < stores.size(); ++index) live[index].push_back(stores[index].take(9));
  for (int round = 0; round < 400; ++round) {
    for (size_t index = 0; index < stores.size(); ++index) {
      Span*& span = live[index][static_cast<size_t>(round * 7) % live[index].size()];
      stores[index].give(span, SpanStore::Use::slab);
      span = stores[index].take(9 + static_cast<size_t>(round) % 5, SpanStore::Use::slab);
    }
  }
}

std::deque<Store> stores(uintptr_t count) {
  std::deque<Store> all;
  for (uintptr_t number = 1; number <= count; ++number) all.emplace_back(number);
  return all;
}

// What a store among few has at most, and keeps whole besides.
constexpr Units kOfFew = Units::holding((2 << 20) + (512 << 10));

TEST(SpanStore, AmongFewLongSpansGoToTheArenaAtOnce) {
  std::deque<Store> few = stores(2);
  crowd(few);
  EXPECT_GT(few[0].budget(), SpanStore::kLeastBudget);
  EXPECT_LE(few[0].budget().count, kOfFew.count);
  Span *span = few[0].take(20, SpanStore::Use::slab), *longer = few[0].take(9, SpanStore::Use::slab);
  const size_t kept = few[0].total().count, used = in_use();
  few[0].give(span, SpanStore::Use::slab);
  EXPECT_LE(few[0].total().count, kept);
  EXPECT_EQ(in_use(), used - 20);
  // And those that have become long.
  Span* behind = few[0].take(9, SpanStore::Use::slab);
  for (; behind != longer + 9; behind = few[0].take(9, SpanStore::Use::slab)) longer = behind;
  few[0].give(longer, SpanStore::Use::slab);
  few[0].give(behind, SpanStore::Use::slab);
  EXPECT_NE(longer->kind.load(), SpanKind::kept);
  EXPECT_TRUE(few[0].is_valid());
}

TEST(SpanStore, AmongManyEachKeepsItsOwn) {
  std::deque<Store> many = stores(24);
  crowd(many);
  EXPECT_GT(many[0].budget().count, kOfFew.count);
  Span* span = many[0].take(20, SpanStore::Use::slab);
  const size_t used = in_use();
  many[0].give(span, SpanStore::Use::slab);
  EXPECT_EQ(in_use(), used);
}

TEST(SpanStore, WhoWasAwayTakesNoCrowdForOne) {
  std::deque<Store> few = stores(2);
  crowd(few);
  auto visit = [none = SpanList()]() mutable { g_arena.trade(&none, nullptr, {}, kCaller); };
  for (int round = 0; round < 10000; ++round) visit();
  for (int round = 0; round < 20; ++round) {
    visit();
    few[0].give(few[0].take(40));
  }
  EXPECT_LE(few[0].budget().count, kOfFew.count);
}

// So much that some are kept whole.
std::vector<Span*> take_much(Store& store) {
  std::vector<Span*> spans;
  for (int count = 0; count < 100; ++count) spans.push_back(store.take(10));
  return spans;
}

TEST(SpanStore, WholeSpansServeTheirLikeAgain) {
  Store store(1);
  take_much(store);
  Span* const spans[] = {store.take(5), store.take(6), store.take(5)};
  for (Span* span : spans) store.give(span);
  EXPECT_TRUE(store.is_valid());
  Span* shorter = store.take(4);
  for (Span* span : spans) EXPECT_TRUE(shorter + 4 <= span || span + span->units <= shorter) << "divided one";
  EXPECT_EQ(store.take(5), spans[2]) << "which was used last";
  EXPECT_EQ(store.take(5), spans[0]);
  EXPECT_EQ(store.take(6), spans[1]);
}

TEST(SpanStore, SlabsAreDividedAndDivideNone) {
  Store store(1);
  take_much(store);
  Span *slab = store.take(5), *block = store.take(5);
  store.give(block);
  store.give(slab, SpanStore::Use::slab);
  EXPECT_EQ(store.take(4, SpanStore::Use::slab), slab);
  EXPECT_NE(store.take(5, SpanStore::Use::slab), block);
  EXPECT_EQ(store.take(5), block);
}

TEST(SpanStore, WhoseHeapHasLittleDividesAll) {
  Store store(1);
  Span* span = store.take(5);
  store.give(span);
  EXPECT_EQ(store.take(4), span);
}

TEST(SpanStore, WhoseHeapHasLittleKeepsWholeWhatNobodyWantsDivided) {
  Store store(1);
  Span *first = store.take(3), *second = store.take(3);
  ASSERT_EQ(second, first + 3);
  store.give(first);
  store.give(second);
  EXPECT_EQ(store.take(3), second);
  EXPECT_EQ(store.take(3), first);
  store.give(first);
  store.give(second);
  EXPECT_LE(store.total().count, SpanStore::kLeastBudget.count);
  EXPECT_EQ(store.take(6), first) << "one after all";
}

TEST(SpanStore, LengthensIntoOneThatIsKeptWhole) {
  Store store(1), other(2);
  take_much(store);
  Span *span = store.take(5), *behind = store.take(5);
  for (; behind != span + 5; behind = store.take(5)) span = behind;
  store.give(behind);
  EXPECT_FALSE(other.lengthen(span, 6));
  EXPECT_TRUE(store.lengthen(span, 8));
  EXPECT_EQ(span->units, 8u);
  EXPECT_EQ(store.take(2), span + 8);
  EXPECT_TRUE(store.is_valid());
}

TEST(SpanStore, FewAreKeptWhole) {
  Store store(1);
  take_much(store);
  std::vector<Span*> spans;
  for (int count = 0; count < 100; ++count) spans.push_back(store.take(3 + static_cast<size_t>(count) % 6));
  for (Span* span : spans) store.give(span);
  EXPECT_LE(store.budget().count, SpanStore::kLeastBudget.count + Units::holding(512 << 10).count);
  EXPECT_LE(store.total().count, store.budget().count);
  EXPECT_TRUE(store.is_valid());
  store.empty(kCaller);
  EXPECT_EQ(store.total(), Units{});
  EXPECT_EQ(in_use(), 1000u);
}

TEST(SpanStore, WithoutMemoryAllAreDivided) {
  Store store(1);
  take_much(store);
  Span* const spans[] = {store.take(5), store.take(5)};
  for (Span* span : spans) store.give(span);
  fake::fail_all(fake::Call::commit, true);
  std::vector<Span*> single;
  while (Span* span = store.take(1)) single.push_back(span);
  for (Span* span : spans) EXPECT_NE(std::find(single.begin(), single.end(), span), single.end());
  EXPECT_EQ(store.total(), Units{});
}

TEST(SpanStore, LengthensIntoWhatFollows) {
  Store store(1);
  Span* span = store.take(1);  // and three more, ahead
  ASSERT_GE(store.total().count, 3u);
  pages::mark(g_realm.address(span), kUnitSize, 5);
  EXPECT_FALSE(store.lengthen(span, 5)) << "no further than the store reaches";
  EXPECT_TRUE(store.lengthen(span, 3));
  EXPECT_EQ(span->units, 3u);
  EXPECT_TRUE(span->zero) << "what was added was never used";
  EXPECT_TRUE(pages::are_marked(g_realm.address(span), kUnitSize, 5));
  EXPECT_TRUE(store.is_valid());
  store.give(span, SpanStore::Use::slab);
  EXPECT_EQ(span->units, 4u);
}

TEST(SpanStore, WhatWasTakenAheadReadsAsZeroAndWhatCameBackDoesNot) {
  Store store(1);
  Span* span = store.take(2);
  EXPECT_TRUE(span->zero);
  store.give(span);
  EXPECT_FALSE(store.take(4)->zero) << "half of it was used";
}

TEST(SpanStore, WithoutMemoryItGivesNullAndStaysWhole) {
  Store store(1);
  store.give(store.take(1));
  size_t left = (g_realm.committed() - g_arena.figures().in_use) / kUnitSize;
  fake::fail_all(fake::Call::commit, true);
  std::vector<Span*> spans;
  while (Span* span = store.take(1)) spans.push_back(span);
  EXPECT_GE(spans.size(), left);
  EXPECT_EQ(store.take(1), nullptr);
  store.give(spans.back());
  EXPECT_EQ(store.take(1), spans.back());
  EXPECT_TRUE(store.is_valid());
}

// Three stores and the arena play at random; what is handed out overlaps nothing, and all of it is counted.
class SpanStorePlay : public testing::TestWithParam<unsigned> {};

TEST_P(SpanStorePlay, EveryUnitIsInOnePlace) {
  std::mt19937 random(GetParam());
  auto below = [&random](size_t end) { return random() % end; };
  Store stores[] = {Store(1), Store(2), Store(3)};
  struct Live {
    Span* span;
    size_t store;
    uint64_t mark;
  };
  std::vector<Live> live;
  uint64_t marks = 0;
  auto mark = [&](Live& block) {
    block.mark = ++marks;
    pages::mark(g_realm.address(block.span), Units{block.span->units}.bytes(), block.mark);
  };
  for (int step = 0; step < 3000; ++step) {
    size_t store = below(3), choice = below(20);
    if (choice < 10 && live.size() < 80) {
      size_t units = below(4) == 0 ? 1 + below(64) : 1 + below(12);
      Span* span = stores[store].take(units);
      ASSERT_NE(span, nullptr);
      ASSERT_EQ(span->units, units);
      live.push_back({span, store, 0});
      mark(live.back());
    } else if (choice < 18 && !live.empty()) {
      std::swap(live[below(live.size())], live.back());
      Live block = live.back();
      live.pop_back();
      ASSERT_TRUE(pages::are_marked(g_realm.address(block.span), Units{block.span->units}.bytes(), block.mark));
      // Now and then by another's hand: what comes from afar.
      stores[below(8) == 0 ? store : block.store].give(block.span);
    } else if (choice == 18 && !live.empty()) {
      Live& block = live[below(live.size())];
      size_t to = block.span->units + 1 + below(8);
      if (stores[block.store].lengthen(block.span, to)) {
        ASSERT_EQ(block.span->units, to);
        mark(block);
      }
    } else if (below(10) == 0) {
      stores[store].empty(kCaller);
    }
    size_t counted = 0;
    for (const Live& block : live) counted += block.span->units;
    for (Store& each : stores) {
      ASSERT_TRUE(each.is_valid());
      counted += each.total().count;
    }
    ASSERT_EQ(counted, in_use());
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SpanStorePlay, testing::Range(0u, 8u));

// Until as much is committed as `bytes`, by one store or by as many as it takes.
void commit_until(Store* store, size_t bytes) {
  for (uintptr_t number = 2; g_realm.committed() < bytes; ++number) {
    Store other(number);
    ASSERT_NE((store != nullptr ? *store : other).take(2, SpanStore::Use::dense_slab), nullptr);
  }
}

TEST(SpanStore, ManySmallHeapsAreNoDenseMemory) {
  if (!wishes_for_huge()) GTEST_SKIP() << "huge pages are asked for by option alone";
  const size_t large = 12 * platform::huge_page_size();
  commit_until(nullptr, 3 * large);
  EXPECT_EQ(fake::huge_bytes(), 0u) << "each holds little, and touches less";
  Store store(1);
  commit_until(&store, 4 * large);
  EXPECT_GT(fake::huge_bytes(), 0u) << "a large heap";
}

}  // namespace
}  // namespace rh
