#include "arena/arena.h"

#include <gtest/gtest.h>

#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "base/bits.h"
#include "platform/fake/fake.h"
#include "support/arena_player.h"
#include "support/huge_pages.h"
#include "support/pages.h"

namespace rh {
namespace {

// Where address space is short it is released too: whole pieces of it, wherever they lie.
TEST(Arena, ReturnsAddressSpace) {
  if (k64Bit) GTEST_SKIP() << "there is enough of it";
  size_t before = fake::reserved_bytes();
  for (int round = 0; round < 3; ++round) {
    std::vector<Span*> spans;
    for (size_t count = 0; count < 40; ++count)
      spans.push_back(g_arena.allocate(Units::holding((1 + count % 7) * kMiB)));
    spans.push_back(g_arena.allocate(Units::holding(50 * kMiB)));
    size_t most = fake::reserved_bytes();
    Span* kept = spans[20];
    for (Span* span : spans)
      if (span != kept) g_arena.free(span);
    g_arena.purge(0);
    g_arena.return_address_space();
    EXPECT_LE(fake::reserved_bytes(), before + (most - before) / 3);
    EXPECT_EQ(g_arena.figures().committed - g_realm.committed(), 0u);
    pages::mark(g_realm.address(kept), Units{kept->units}.bytes(), 5);
    EXPECT_TRUE(pages::are_marked(g_realm.address(kept), Units{kept->units}.bytes(), 5));
    g_arena.free(kept);
  }
}

// ---- spans one by one ---------------------------------------------------------------------------

TEST(Arena, GivesSpansThatOverlapNothing) {
  Arena arena;
  Span* a = arena.allocate({3});
  Span* b = arena.allocate({1});
  Span* c = arena.allocate({200});
  uint64_t seed = 0;
  for (Span* span : {a, b, c}) {
    ASSERT_NE(span, nullptr);
    EXPECT_EQ(span->kind.load(), SpanKind::none);
    EXPECT_EQ(span->owner.load(), nullptr);
    EXPECT_TRUE(span->zero);  // never used before
    EXPECT_TRUE(pages::are_zero(address(span), bytes(span)));
    pages::mark(address(span), bytes(span), ++seed);
  }
  EXPECT_EQ(a->units, 3u);
  EXPECT_EQ(c->units, 200u);
  EXPECT_TRUE(pages::are_marked(address(a), bytes(a), 1));
  EXPECT_TRUE(pages::are_marked(address(b), bytes(b), 2));
  EXPECT_TRUE(pages::are_marked(address(c), bytes(c), 3));
  EXPECT_EQ(arena.figures().in_use, Units{204}.bytes());
  EXPECT_EQ(arena.figures().spans_taken, 3u);
  expect_conserved(arena);
}

TEST(Arena, WhatWasFreedIsUsedAgainFirst) {
  Arena arena;
  Span* span = arena.allocate({5});
  Span* wall = arena.allocate({1});
  pages::mark(address(span), bytes(span), 1);
  arena.free(span);
  Span* again = arena.allocate({5});
  EXPECT_EQ(again, span);
  EXPECT_FALSE(again->zero);
  arena.free(again);
  Span* zero = arena.allocate({5}, {1}, Prefer::zero);
  EXPECT_NE(zero, span);
  EXPECT_TRUE(zero->zero);
  arena.free(wall);
  expect_conserved(arena);
}

TEST(Arena, TheBestFitIsTaken) {
  Arena arena;
  Span* spans[9];
  for (size_t index = 0; index < 9; ++index) spans[index] = arena.allocate({index % 2 ? 1 : 10 - index});
  for (size_t index = 0; index < 9; index += 2) arena.free(spans[index]);
  // Free spans of 10, 8, 6, 4 and 2 units, one of them next to memory never used.
  EXPECT_EQ(arena.allocate({6}), spans[4]);
  EXPECT_EQ(arena.allocate({5}, {1}), spans[2]);
  expect_conserved(arena);
}

// ---- memory nodes -------------------------------------------------------------------------------

TEST(Arena, MemoryIsUsedAgainWhereItWasTouched) {
  Arena arena;
  Span* here = arena.allocate({5});
  fake::set_node(1);
  Span* there = arena.allocate({5});
  Span* wall = arena.allocate({1});
  arena.free(here);
  arena.free(there);
  EXPECT_EQ(here->units, 5u);  // side by side, and not one
  expect_conserved(arena);
  EXPECT_EQ(arena.allocate({3}), there);
  fake::set_node(0);
  EXPECT_EQ(arena.allocate({2}), here);
  EXPECT_EQ(arena.allocate({3}), here + 2);  // what is left of a span lies where that did
  arena.free(there);
  arena.free(here);
  expect_conserved(arena);
  fake::set_node(1);
  EXPECT_EQ(arena.allocate({5}), there);
  arena.free(wall);
}

// Whoever freed it, and whatever was done with it.
TEST(Arena, ItIsTheFirstTouchThatCounts) {
  Arena arena;
  fake::set_node(1);
  Span* span = arena.allocate({8});
  Span* wall = arena.allocate({1});
  fake::set_node(0);
  Span* rest = arena.cut(span, {3});
  arena.free(rest);
  arena.free(span);
  EXPECT_EQ(span->units, 8u);
  EXPECT_NE(arena.allocate({8}), span);
  fake::set_node(1);
  EXPECT_EQ(arena.allocate({8}), span);
  // Its pages went back to the OS: they will lie where they are touched next.
  arena.free(span);
  arena.purge(0);
  fake::set_node(0);
  Span* again = arena.allocate({8});
  EXPECT_EQ(again, span);
  arena.free(again);
  EXPECT_EQ(arena.allocate({8}), span);
  arena.free(wall);
  expect_conserved(arena);
}

TEST(Arena, ThePeakDoesNotGrowWhileAnotherNodeHasFreeMemory) {
  Arena arena;
  constexpr Units kLong = Units::holding(16 << 20);
  Span* span = arena.allocate(kLong);
  arena.free(span);
  fake::set_node(1);
  // A little more than the peak may be held: then the other's is taken, also where nothing goes back to the OS.
  fake::fail_all(fake::Call::purge, true);
  auto is_fresh = [&](const Span* taken) { return taken < span || taken >= span + kLong.count; };
  size_t taken_fresh = 0;
  while (is_fresh(arena.allocate({4}))) taken_fresh += Units{4}.bytes();
  EXPECT_GT(taken_fresh, size_t{1} << 20);
  EXPECT_LT(taken_fresh, size_t{3} << 20);
  fake::fail_all(fake::Call::purge, false);
  expect_conserved(arena);
}

TEST(Arena, MemoryOfAnyNodeIsBetterThanNone) {
  Arena arena;
  Span* span = arena.allocate({40});
  arena.free(span);
  fake::fail_all(fake::Call::commit, true);
  fake::set_node(1);
  while (arena.figures().committed > arena.figures().in_use + Units{40}.bytes()) arena.allocate({1});
  EXPECT_NE(arena.allocate({30}), nullptr);
  fake::fail_all(fake::Call::commit, false);
}

TEST(Arena, NeighboursBecomeOne) {
  Arena arena;
  Span* a = arena.allocate({2});
  Span* b = arena.allocate({3});
  Span* c = arena.allocate({4});
  Span* wall = arena.allocate({1});
  arena.free(a);
  arena.free(c);
  arena.free(b);
  EXPECT_EQ(a->kind.load(), SpanKind::free_dirty);
  EXPECT_EQ(a->units, 9u);
  expect_conserved(arena);
  EXPECT_EQ(arena.allocate({9}), a);
  arena.free(wall);
}

TEST(Arena, AlignsAndGivesTheRestBack) {
  Arena arena;
  std::vector<Span*> spans;
  for (size_t alignment = 1; alignment <= 512; alignment *= 2) {
    for (size_t units : {1u, 2u, 7u, 100u}) {
      Span* span = arena.allocate({units}, {alignment});
      ASSERT_NE(span, nullptr);
      EXPECT_EQ(address(span) % Units{alignment}.bytes(), 0u) << alignment;
      EXPECT_EQ(span->units, units);
      spans.push_back(span);
    }
    expect_conserved(arena);
  }
  for (Span* span : spans) arena.free(span);
  expect_conserved(arena);
  EXPECT_EQ(arena.figures().in_use, 0u);
}

TEST(Arena, AnAlignedSpanGoesWhereOneOfItsKindWas) {
  Arena arena;
  Units units{64};
  std::vector<Span*> spans, walls;
  for (int count = 0; count < 4; ++count) {
    spans.push_back(arena.allocate(units, units));
    walls.push_back(arena.allocate({1}));
  }
  size_t held = arena.figures().committed;
  for (int round = 0; round < 8; ++round) {
    Span*& span = spans[static_cast<size_t>(round) % spans.size()];
    Span* before = span;
    arena.free(span);
    span = arena.allocate(units, units);
    EXPECT_EQ(span, before) << round;
  }
  EXPECT_EQ(arena.figures().committed, held);
  for (Span* span : spans) arena.free(span);
  for (Span* wall : walls) arena.free(wall);
  expect_conserved(arena);
}

TEST(Arena, ImpossibleSizesAreRefused) {
  Arena arena;
  EXPECT_EQ(arena.allocate({SIZE_MAX >> kUnitShift}), nullptr);
  EXPECT_EQ(arena.allocate({SIZE_MAX}, {2}), nullptr);
  EXPECT_EQ(arena.allocate({UINT32_MAX}), nullptr);
  EXPECT_NE(arena.allocate({1}), nullptr);
  expect_conserved(arena);
}

// What trade() gives when nothing goes back.
Units take_some(Arena& arena, SpanList* list, size_t least, size_t most) {
  SpanList nothing;
  return arena.trade(&nothing, list, {Units{least}, Units{most}}, platform::thread_token()).taken;
}

TEST(Arena, TakesSomeInOneGo) {
  Arena arena;
  SpanList list;
  ASSERT_EQ(take_some(arena, &list, 1, 6), Units{6});
  EXPECT_EQ(arena.figures().in_use, Units{6}.bytes());
  Arena::Visit visit = arena.trade(&list, nullptr, {}, platform::thread_token());
  EXPECT_EQ(visit.given, Units{6});
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(arena.figures().in_use, 0u);
  expect_conserved(arena);
}

TEST(Arena, TakesSomeAsMuchAsThereIs) {
  Arena arena;
  ASSERT_NE(arena.allocate({1}), nullptr);
  fake::fail_all(fake::Call::commit, true);
  SpanList list;
  size_t left = (g_realm.committed() - arena.figures().in_use) / kUnitSize, got = 0;
  for (Units some{1}; some > Units{}; got += some.count) some = take_some(arena, &list, 1, 5);
  EXPECT_EQ(got, left);
  EXPECT_EQ(arena.allocate({1}), nullptr);
  arena.free(list.pop_front());
  EXPECT_NE(arena.allocate({1}), nullptr);
  expect_conserved(arena);
}

TEST(Arena, TakesAheadNoMoreThanAQuarterOfWhatIsWarm) {
  Arena arena;
  Span* warm = arena.allocate({200});
  Span* last = arena.allocate({1});
  arena.free(warm);
  SpanList list;
  EXPECT_EQ(take_some(arena, &list, 2, 150), Units{50});
  EXPECT_EQ(list.first()->units, 50u) << "long runs are in one piece";
  EXPECT_EQ(take_some(arena, &list, 100, 150), Units{100}) << "as much as is needed in any case";
  arena.free(last);
}

TEST(Arena, WhatWasTakenAheadAndNotUsedIsStillZero) {
  Arena arena;
  SpanList list;
  ASSERT_EQ(take_some(arena, &list, 4, 4), Units{4});
  EXPECT_TRUE(list.first()->zero);
  arena.trade(&list, nullptr, {}, platform::thread_token());
  EXPECT_EQ(arena.figures().dirty, 0u);
  expect_conserved(arena);
}

// ---- huge pages -----------------------------------------------------------------------------------

// Takes until more is committed. Gives how much more.
size_t grow(Arena& arena, Prefer prefer) {
  const size_t before = g_realm.committed();
  const Units piece = Units::holding(256 << 10);
  while (g_realm.committed() == before) {
    SpanList nothing, list;
    arena.trade(&nothing, &list, {piece, piece, prefer}, platform::thread_token());
    if (list.empty()) break;
  }
  return g_realm.committed() - before;
}

void make_large(Arena& arena) {
  const Units large = Units::holding(12 * platform::huge_page_size());
  while (g_realm.committed() < large.bytes()) ASSERT_NE(arena.allocate(large), nullptr);
}

TEST(Arena, HugePagesAreForTheYoungestDenseMemoryOfALargeHeap) {
  if (!wishes_for_huge()) GTEST_SKIP() << "huge pages are asked for by option alone";
  Arena arena;
  ASSERT_GT(grow(arena, Prefer::dense), 0u);
  EXPECT_EQ(fake::huge_bytes(), 0u) << "it is small";
  make_large(arena);
  ASSERT_GT(grow(arena, Prefer::warm), 0u);
  EXPECT_EQ(fake::huge_bytes(), 0u) << "it may be touched here and there";
  for (int time = 0; time < 3; ++time) {
    const size_t grown = grow(arena, Prefer::dense);
    EXPECT_EQ(fake::huge_bytes(), grown);
    EXPECT_EQ((g_realm.first_address() + g_realm.committed()) % platform::huge_page_size(), 0u);
  }
  grow(arena, Prefer::warm);
  EXPECT_GT(fake::huge_bytes(), 0u);
  arena.purge(0, Units{1});
  EXPECT_GT(fake::huge_bytes(), 0u) << "while it works surplus goes back";
  arena.purge(1000);
  EXPECT_EQ(fake::huge_bytes(), 0u) << "what is not touched by now may never be";
  expect_conserved(arena);
}

TEST(Arena, WhereAllIsToLieInHugePagesGrowthEndsWithOne) {
  if (!wishes_for_huge()) GTEST_SKIP() << "huge pages are longer than heaps here, or never had";
  Arena arena;
  g_realm.prefer_huge(HugePages::all);
  const size_t huge = platform::huge_page_size();
  auto end = [] { return g_realm.first_address() + g_realm.committed(); };
  grow(arena, Prefer::warm);
  EXPECT_LT(g_realm.committed(), huge) << "a small program takes no more than before";
  while (g_realm.committed() < 2 * huge) ASSERT_GT(grow(arena, Prefer::warm), 0u);
  for (int time = 0; time < 3; ++time) {
    ASSERT_GT(grow(arena, Prefer::warm), 0u);
    EXPECT_EQ(end() % huge, 0u);
  }
  arena.set_limit({.soft = g_realm.committed() * 4, .hard = g_realm.committed() * 4});
  grow(arena, Prefer::warm);
  EXPECT_NE(end() % huge, 0u) << "where there is a limit";
  g_realm.prefer_huge(HugePages::dense);
  expect_conserved(arena);
}

TEST(Arena, NoHugePagesAreAskedForWhereThereIsALimit) {
  Arena arena;
  make_large(arena);
  arena.set_limit({.soft = g_realm.committed() * 4, .hard = g_realm.committed() * 4});
  ASSERT_GT(grow(arena, Prefer::dense), 0u);
  EXPECT_EQ(fake::huge_bytes(), 0u);
}

TEST(Arena, NoHugePagesAreAskedForWhereNoneAreToBe) {
  Arena arena;
  make_large(arena);
  g_realm.prefer_huge(HugePages::none);
  ASSERT_GT(grow(arena, Prefer::dense), 0u);
  EXPECT_EQ(fake::huge_bytes(), 0u);
  g_realm.prefer_huge(HugePages::dense);
}

TEST(Arena, NumbersVisits) {
  Arena arena;
  SpanList nothing, list;
  EXPECT_EQ(arena.trade(&nothing, &list, {Units{1}, Units{1}}, platform::thread_token()).number, 1u);
  EXPECT_EQ(arena.trade(&list, nullptr, {}, platform::thread_token()).number, 2u);
}

TEST(Arena, CutsSpans) {
  Arena arena;
  Span* span = arena.allocate({10});
  Span* rest = arena.cut(span, {4});
  EXPECT_EQ(rest, span + 4);
  EXPECT_EQ(span->units, 4u);
  EXPECT_EQ(rest->units, 6u);
  EXPECT_EQ(arena.figures().in_use, Units{10}.bytes());
  arena.free(span);
  arena.free(rest);
  expect_conserved(arena);
}

TEST(Arena, LengthensInPlace) {
  Arena arena;
  Span* span = arena.allocate({4});
  pages::mark(address(span), bytes(span), 1);
  ASSERT_TRUE(arena.lengthen(span, {6}));  // into memory never used
  EXPECT_EQ(span->units, 6u);
  EXPECT_TRUE(span->zero);
  EXPECT_TRUE(pages::are_zero(address(span) + 4 * kUnitSize, 2 * kUnitSize));
  Span* next = arena.allocate({3});
  ASSERT_EQ(next, span + 6);
  Span* wall = arena.allocate({1});
  EXPECT_FALSE(arena.lengthen(span, {7}));
  EXPECT_EQ(span->units, 6u);
  pages::mark(address(next), bytes(next), 2);
  arena.free(next);
  EXPECT_FALSE(arena.lengthen(span, {10}));  // only three are free
  ASSERT_TRUE(arena.lengthen(span, {8}));
  EXPECT_FALSE(span->zero);
  EXPECT_TRUE(pages::are_marked(address(span), 4 * kUnitSize, 1));
  expect_conserved(arena);
  ASSERT_TRUE(arena.lengthen(span, {9}));
  EXPECT_EQ(wall, span + 9);
  expect_conserved(arena);
}

TEST(Arena, LengthensBeyondWhatIsCommitted) {
  if (!k64Bit) GTEST_SKIP() << "pieces need not follow each other";
  Arena arena;
  Span* span = arena.allocate({1});
  // First all committed memory, then more than that.
  size_t units = g_realm.committed() / kUnitSize;
  ASSERT_TRUE(arena.lengthen(span, {units}));
  ASSERT_FALSE(g_realm.contains(span + units));
  ASSERT_TRUE(arena.lengthen(span, {units + 1000}));
  EXPECT_EQ(span->units, units + 1000);
  expect_conserved(arena);
}

TEST(Arena, LengthensBeyondTheLittleThatIsFreeAtTheEnd) {
  if (!k64Bit) GTEST_SKIP() << "pieces need not follow each other";
  Arena arena;
  Span* span = arena.allocate({1});
  size_t units = g_realm.committed() / kUnitSize;
  ASSERT_TRUE(arena.lengthen(span, {units - 3}));
  fake::fail_all(fake::Call::commit, true);
  EXPECT_FALSE(arena.lengthen(span, {units + 1000}));
  EXPECT_EQ(span->units, units - 3);
  expect_conserved(arena);
  fake::fail_all(fake::Call::commit, false);
  ASSERT_TRUE(arena.lengthen(span, {units + 1000}));
  EXPECT_EQ(span->units, units + 1000);
  EXPECT_TRUE(pages::are_zero(address(span), bytes(span)));
  expect_conserved(arena);
}

// What is free there but not clean would not merge with what followed it.
TEST(Arena, DoesNotLengthenBeyondWhatIsDirtyAtTheEnd) {
  Arena arena;
  Span* span = arena.allocate({1});
  size_t units = g_realm.committed() / kUnitSize;
  Span* last = arena.allocate({units - 1});
  ASSERT_EQ(last, span + 1);
  arena.free(last);
  size_t before = g_realm.committed();
  EXPECT_FALSE(arena.lengthen(span, {units + 1}));
  EXPECT_EQ(g_realm.committed(), before);
  ASSERT_TRUE(arena.lengthen(span, {units}));
  expect_conserved(arena);
}

TEST(Arena, ALengtheningThatFailsChangesNothing) {
  Arena arena;
  Span* span = arena.allocate({1});
  ASSERT_TRUE(arena.lengthen(span, {g_realm.committed() / kUnitSize}));
  size_t units = span->units;
  fake::fail_all(fake::Call::commit, true);
  EXPECT_FALSE(arena.lengthen(span, {units + 1}));
  EXPECT_EQ(span->units, units);
  expect_conserved(arena);
}

// ---- time and purging ---------------------------------------------------------------------------

// Spans with an allocated unit behind each, so that they do not merge.
std::vector<Span*> apart(Arena& arena, size_t count, size_t units) {
  std::vector<Span*> spans;
  for (size_t index = 0; index < count; ++index) {
    spans.push_back(arena.allocate({units}));
    arena.allocate({1});
  }
  return spans;
}

TEST(Arena, ReturnsWhatHasBeenFreeLongEnough) {
  Arena arena;
  auto spans = apart(arena, 3, 4);
  for (Span* span : spans) pages::mark(address(span), bytes(span), 1);
  arena.free(spans[0]);
  fake::advance(100);
  arena.free(spans[1]);
  EXPECT_EQ(arena.purge(101), 0u);
  EXPECT_EQ(arena.purge(100), Units{4}.bytes());
  EXPECT_EQ(spans[0]->kind.load(), SpanKind::free_clean);
  EXPECT_EQ(spans[1]->kind.load(), SpanKind::free_dirty);
  expect_conserved(arena);
  fake::advance(99);
  EXPECT_EQ(arena.purge(100), 0u);
  fake::advance(1);
  EXPECT_EQ(arena.purge(100), Units{4}.bytes());
  EXPECT_EQ(arena.figures().returned, Units{8}.bytes());
  EXPECT_TRUE(pages::are_marked(address(spans[2]), bytes(spans[2]), 1));
  expect_conserved(arena);
}

TEST(Arena, AgeZeroReturnsAll) {
  Arena arena;
  auto spans = apart(arena, 5, 2);
  for (Span* span : spans) arena.free(span);
  EXPECT_EQ(arena.purge(0), Units{10}.bytes());
  EXPECT_EQ(arena.figures().dirty, 0u);
  EXPECT_EQ(arena.purge(0), 0u);
  expect_conserved(arena);
}

TEST(Arena, AgesAreRightWhenTheClocksLowBitsWrap) {
  Arena arena;
  auto spans = apart(arena, 2, 4);
  fake::set_clock((uint64_t{5} << 32) - 50);
  arena.free(spans[0]);
  fake::advance(100);  // beyond the wrap
  arena.free(spans[1]);
  EXPECT_EQ(arena.purge(101), 0u);
  EXPECT_EQ(arena.purge(100), Units{4}.bytes());
  fake::advance(100);
  EXPECT_EQ(arena.purge(100), Units{4}.bytes());
}

// An eighth of what is held a second, a quarter saved up, whatever is asked for meanwhile; the last span as a whole.
TEST(Arena, WhatIsBeyondThePeakGoesBackAtABoundedRate) {
  Arena arena;
  fake::set_clock(1'000'000);
  auto spans = apart(arena, 512, 7);
  for (Span* span : spans) arena.free(span);
  size_t peak = arena.figures().in_use_peak;
  size_t most = peak / 4;
  for (int step = 0; step < 50; ++step) {
    for (int count = 0; count < 4; ++count) ASSERT_NE(arena.allocate({8}), nullptr);  // fits nowhere
    ASSERT_LE(arena.figures().returned, most) << step;
    fake::advance(20);
    most += peak / 8 * 20 / 1000 + Units{7}.bytes();
  }
  EXPECT_EQ(arena.figures().in_use_peak, peak);
  EXPECT_GT(arena.figures().returned, peak / 4);
  expect_conserved(arena);
}

// Buffers cut to a tenth of what they were made for, two at a time: what is cut off fits none of the others, and
// between two of them it cannot be lengthened.
void expect_cut_buffers_hold_little(Arena& arena) {
  constexpr Units kLong = Units::holding(2 << 20), kShort{kLong.count / 10};
  for (int count = 0; count < 64; ++count) {
    Span* span = arena.allocate(kLong);
    Span* behind = arena.allocate(kLong);
    ASSERT_NE(behind, nullptr);
    arena.free(arena.cut(span, kShort));
    arena.free(arena.cut(behind, kShort));
    const Arena::Figures now = arena.figures();
    ASSERT_LE(now.in_use + now.dirty, now.in_use_peak + now.in_use_peak / 2 + Units::holding(4 << 20).bytes()) << count;
  }
}

// Two buffers in turn, each time longer than what the last ones left, and beside which nothing is free.
void grow_by_copies(Arena& arena, size_t most_mib) {
  constexpr size_t kStep = Units::holding(1 << 20).count;
  Span* buffers[2] = {};
  for (size_t length = kStep; length <= most_mib * kStep; length += kStep) {
    for (Span*& buffer : buffers) {
      Span* longer = arena.allocate({length});
      ASSERT_NE(longer, nullptr);
      if (buffer != nullptr) arena.free(buffer);
      buffer = longer;
    }
  }
  for (Span* buffer : buffers) arena.free(buffer);
}

TEST(Arena, WhatIsFarBeyondThePeakGoesBackAtOnce) {
  Arena arena;
  fake::set_clock(1'000'000);
  expect_cut_buffers_hold_little(arena);
  EXPECT_GT(arena.figures().returned, Units::holding(64 << 20).bytes());
  expect_conserved(arena);
}

// Each time what the last ones left has become long enough.
TEST(Arena, WhatBuffersThatGrowLeaveBehindIsUsedBeforeItGoesBack) {
  Arena arena;
  fake::set_clock(1'000'000);
  grow_by_copies(arena, 100);
  EXPECT_LE(arena.figures().returned, arena.figures().in_use_peak);
  expect_conserved(arena);
}

TEST(Arena, NoMoreStaysWarmThanIsInUse) {
  Arena arena;
  fake::set_clock(1'000'000);
  constexpr size_t kMiB = 1 << 20, kLittle = 4 * kMiB;
  std::vector<Span*> spans = apart(arena, 512, 7);
  const size_t peak = arena.figures().in_use_peak;
  for (Span* span : spans) arena.free(span);
  auto dirty = [&] { return arena.figures().dirty; };
  auto work_for = [&](int ms) {
    for (; ms > 0; ms -= 20) {
      const size_t before = dirty();
      arena.free(arena.allocate({7}));
      EXPECT_GE(dirty() + kLittle, before) << "at once";
      fake::advance(20);
    }
  };
  work_for(200);
  EXPECT_LT(dirty(), 512 * Units{7}.bytes() - peak / 8) << "before it is old";
  EXPECT_GT(dirty(), 512 * Units{7}.bytes() - peak / 4 - peak / 8);
  work_for(20000);
  const size_t left = dirty();
  EXPECT_LE(left, arena.figures().in_use + kLittle + 2 * Units{7}.bytes());
  EXPECT_GT(left, arena.figures().in_use);
  work_for(1000);
  EXPECT_EQ(dirty(), left);
  expect_conserved(arena);
}

// What grows where it lies is the highest mark too: of what it was, nothing is too much when it is freed.
TEST(Arena, WhatGrewInPlaceStaysWarm) {
  if (!k64Bit) GTEST_SKIP() << "longer than a piece of the realm";
  constexpr size_t kLong = Units::holding(16 << 20).count;
  Arena arena;
  fake::set_clock(1'000'000);
  for (int count = 0; count < 10; ++count) {
    Span* span = arena.allocate({1});
    while (span->units < kLong) ASSERT_TRUE(arena.lengthen(span, {span->units + Units::holding(1 << 20).count}));
    arena.free(span);
    arena.free(arena.allocate({1}));
  }
  EXPECT_LE(arena.figures().returned, Units{kLong}.bytes());
  expect_conserved(arena);
}

// A large heap that is long gone does not let a small one's memory go as fast as its own.
TEST(Arena, APeakOfThePastDoesNotHastenWhatGoesBack) {
  if (!k64Bit) GTEST_SKIP() << "a heap of four gibibytes";
  constexpr size_t kBlock = Units::holding(4 << 20).count, kBlocks = 8;
  Arena arena;
  fake::set_clock(1'000'000);
  arena.free(arena.allocate({Units::holding(size_t{4} << 30).count}));
  arena.purge(0);
  auto frame = [&] {
    std::vector<Span*> spans;
    for (size_t block = 0; block < kBlocks; ++block) spans.push_back(arena.allocate({kBlock}));
    for (Span* span : spans) arena.free(span);
    fake::advance(100);
  };
  frame();
  const size_t before = arena.figures().returned;
  for (int count = 0; count < 10; ++count) frame();
  EXPECT_LE(arena.figures().returned - before, (kBlocks / 2 + 1) * Units{kBlock}.bytes()) << "in a second";
  expect_conserved(arena);
}

TEST(Arena, ALargeHeapGivesBackAnEighthOfWhatItHoldsASecondToo) {
  if (!k64Bit) GTEST_SKIP() << "a heap of four gibibytes";
  Arena arena;
  fake::set_clock(1'000'000);
  std::vector<Span*> spans = apart(arena, 64, Units::holding(64 << 20).count);
  const size_t peak = arena.figures().in_use_peak;
  for (Span* span : spans) arena.free(span);
  auto returned_in_a_second = [&] {
    const size_t before = arena.figures().dirty;
    for (int ms = 0; ms < 1000; ms += 20, fake::advance(20)) arena.free(arena.allocate({7}));
    return before - arena.figures().dirty;
  };
  returned_in_a_second();  // what was saved up, too
  const size_t returned = returned_in_a_second();
  EXPECT_GT(returned, peak / 10);
  EXPECT_LT(returned, peak / 6);
  for (int ms = 0; ms < 10000; ms += 1000) returned_in_a_second();
  expect_conserved(arena);
}

Arena* g_hooked = nullptr;
Span* g_freed_meanwhile = nullptr;

TEST(Arena, WhatIsFreedDuringAPurgeStaysWarm) {
  Arena arena;
  auto spans = apart(arena, 2, 4);
  arena.free(spans[0]);
  fake::advance(1000);
  g_hooked = &arena;
  g_freed_meanwhile = spans[1];
  fake::on_purge([] {
    if (g_freed_meanwhile == nullptr) return;
    fake::advance(5);  // returning memory takes a while
    g_hooked->free(g_freed_meanwhile);
    g_freed_meanwhile = nullptr;
  });
  EXPECT_EQ(arena.purge(1000), Units{4}.bytes());
  EXPECT_EQ(spans[1]->kind.load(), SpanKind::free_dirty);
  expect_conserved(arena);
}

TEST(Arena, OnlyOneReturnsMemoryAtATime) {
  Arena arena;
  auto spans = apart(arena, 2, 4);
  for (Span* span : spans) arena.free(span);
  g_hooked = &arena;
  fake::on_purge([] { EXPECT_EQ(g_hooked->purge(0), 0u); });
  EXPECT_EQ(arena.purge(0), Units{8}.bytes());
  expect_conserved(arena);
}

Span* g_neighbours[2];

// A span being returned to the OS is neither handed out nor merged; its free neighbours wait for it.
TEST(Arena, WhatIsBeingReturnedIsLeftAlone) {
  Arena arena;
  Span* before = arena.allocate({4});
  Span* span = arena.allocate({4});
  Span* after = arena.allocate({4});
  arena.allocate({1});
  arena.free(span);
  g_hooked = &arena;
  g_neighbours[0] = before;
  g_neighbours[1] = after;
  fake::on_purge([] {
    for (Span*& neighbour : g_neighbours) {
      if (neighbour == nullptr) continue;
      pages::mark(address(neighbour), bytes(neighbour), 3);
      g_hooked->free(neighbour);
      EXPECT_EQ(neighbour->units, 4u);
      Span* taken = g_hooked->allocate({4});
      EXPECT_EQ(taken, neighbour);
      g_hooked->free(taken);
      neighbour = nullptr;
    }
  });
  arena.purge(0);
  // It is one span again, without a trace of the purge.
  EXPECT_EQ(arena.figures().dirty, 0u);
  expect_conserved(arena);
}

TEST(Arena, MemoryThatWillNotGoBackCountsAsJustFreed) {
  Arena arena;
  auto spans = apart(arena, 2, 4);
  arena.free(spans[0]);
  fake::advance(10);
  arena.free(spans[1]);
  fake::advance(90);
  fake::fail_all(fake::Call::purge, true);
  EXPECT_EQ(arena.purge(100), 0u);
  EXPECT_EQ(arena.figures().dirty, Units{8}.bytes());
  EXPECT_EQ(arena.figures().returned, 0u);
  expect_conserved(arena);
  fake::fail_all(fake::Call::purge, false);
  fake::advance(10);
  EXPECT_EQ(arena.purge(100), Units{4}.bytes());
  EXPECT_EQ(spans[0]->kind.load(), SpanKind::free_dirty);  // its decay time starts again
  fake::advance(90);
  EXPECT_EQ(arena.purge(100), Units{4}.bytes());
  // What a failed purge left behind is not assumed to be zero.
  Span* span = arena.allocate({4});
  EXPECT_EQ(span->zero, pages::are_zero(address(span), bytes(span)));
  expect_conserved(arena);
}

TEST(Arena, AChildsArenaTakesBackWhatWasOnItsWay) {
  Arena arena;
  auto spans = apart(arena, 1, 4);
  arena.free(spans[0]);
  g_hooked = &arena;
  // As in a forked child: the thread that was returning memory does not come back.
  fake::on_purge([] {
    fake::on_purge(nullptr);
    {
      LockGuard guard(g_hooked->lock(), kForkToken);
      g_hooked->after_fork_in_child();
    }
    Arena& child = *g_hooked;
    EXPECT_EQ(child.figures().dirty, Units{4}.bytes());
    expect_conserved(child);
    EXPECT_EQ(child.purge(0), Units{4}.bytes());
    expect_conserved(child);
    exit(testing::Test::HasFailure() ? 1 : 0);
  });
  EXPECT_EXIT(arena.purge(0), testing::ExitedWithCode(0), "");
}

// A signal handler that forks may have interrupted the very thread that returns memory: that thread does continue in
// the child.
TEST(Arena, AChildsThreadThatWasReturningMemoryGoesOn) {
  Arena arena;
  auto spans = apart(arena, 1, 4);
  arena.free(spans[0]);
  g_hooked = &arena;
  fake::on_purge([] {
    LockGuard guard(g_hooked->lock(), kForkToken);
    g_hooked->after_fork_in_child();
  });
  arena.purge(0);
  fake::on_purge(nullptr);
  expect_conserved(arena);
  arena.purge(0);
  expect_conserved(arena);
}

// ---- pages locked in memory ---------------------------------------------------------------------

size_t purges() { return fake::calls(fake::Call::purge); }

void lock_page(const Span* span, size_t page) {
  fake::lock_pages(address(span) + page * platform::kPageSize, platform::kPageSize);
}

constexpr Units kLong{4096};
constexpr size_t kPagesOfLong = kLong.bytes() / platform::kPageSize;

TEST(Arena, ALockedPageKeepsItsUnitAlone) {
  Arena arena;
  for (size_t page : {size_t{0}, size_t{5}, kPagesOfLong / 2 - 1, kPagesOfLong / 2, kPagesOfLong - 1}) {
    Span* span = arena.allocate(kLong);
    arena.allocate({1});
    uintptr_t unit = align_down(address(span) + page * platform::kPageSize, kUnitSize);
    pages::mark(unit, kUnitSize, 1);
    lock_page(span, page);
    arena.free(span);
    fake::advance(100);
    size_t before = purges();
    EXPECT_EQ(arena.purge(100), (kLong - Units{1}).bytes()) << page;
    EXPECT_LE(purges() - before, 30u);
    EXPECT_FALSE(pages::are_zero(unit, kUnitSize));
    expect_conserved(arena);
    // It counts as just freed, and nothing else is tried again.
    before = purges();
    EXPECT_EQ(arena.purge(100), 0u);
    EXPECT_EQ(purges(), before);
    fake::advance(100);
    EXPECT_EQ(arena.purge(100), 0u);
    EXPECT_EQ(purges(), before + 1);
    fake::unlock_pages(address(span), kLong.bytes());
    fake::advance(100);
    EXPECT_EQ(arena.purge(100), kUnitSize);
    expect_conserved(arena);
  }
}

TEST(Arena, LockedPagesKeepLittleAroundThem) {
  Arena arena;
  Span* span = arena.allocate(kLong);
  arena.allocate({1});
  for (size_t page : {size_t{0}, kPagesOfLong / 3, kPagesOfLong - 1}) lock_page(span, page);
  arena.free(span);
  size_t before = purges();
  arena.purge(0);
  EXPECT_LE(arena.figures().dirty, kLong.bytes() / 64);
  EXPECT_LE(purges() - before, 80u);
  expect_conserved(arena);
  for (int round = 0; round < 4; ++round) arena.purge(0);
  EXPECT_EQ(arena.figures().dirty, Units{3}.bytes());
  expect_conserved(arena);
}

TEST(Arena, LockedPagesDoNotKeepWhatIsElsewhere) {
  Arena arena;
  auto spans = apart(arena, 20, 4);
  for (size_t index = 0; index < 10; ++index) fake::lock_pages(address(spans[index]), bytes(spans[index]));
  for (Span* span : spans) arena.free(span);
  for (int round = 0; round < 10; ++round) arena.purge(0);
  EXPECT_EQ(arena.figures().dirty, Units{40}.bytes());
  expect_conserved(arena);
}

// As after mlockall.
TEST(Arena, LittleIsTriedWhereAllIsLocked) {
  Arena arena;
  auto spans = apart(arena, 50, 40);
  for (Span* span : spans) fake::lock_pages(address(span), bytes(span));
  for (Span* span : spans) arena.free(span);
  for (int round = 0; round < 100; ++round) {
    EXPECT_EQ(arena.purge(0), 0u);
    fake::advance(10);
  }
  EXPECT_LE(purges(), 24u + 100);
  expect_conserved(arena);
  // Nor is more tried when memory would exceed the peak ever in use, while so much of it is free.
  size_t before = purges();
  for (int round = 0; round < 10; ++round) arena.allocate({2100});
  EXPECT_LE(purges() - before, 5u);
  fake::advance(60'000);
  for (Span* span : spans) fake::unlock_pages(address(span), bytes(span));
  lock_page(spans[7], 3);
  arena.purge(0);
  EXPECT_EQ(arena.figures().dirty, kUnitSize);
}

TEST(Arena, WhatIsInPiecesForALockedPageCanBeHadAsOne) {
  Arena arena;
  Span* span = arena.allocate({64});
  for (size_t page : {0, 100, 200}) lock_page(span, page);
  fake::limit_committed(fake::committed_bytes());
  for (int round = 0; round < 3; ++round) {
    arena.free(span);
    EXPECT_EQ(arena.purge(0), Units{61}.bytes());
    expect_conserved(arena);
    ASSERT_EQ(arena.allocate({64}), span);
    EXPECT_FALSE(span->zero);
    expect_conserved(arena);
    pages::mark(address(span), bytes(span), 1);
  }
}

Span* g_others = nullptr;

// Neighbours are used and freed meanwhile, and what was returned is allocated again.
TEST(Arena, APurgeThatIsRefusedLeavesOthersAlone) {
  Arena arena;
  Span* before = arena.allocate({4});
  Span* span = arena.allocate({64});
  Span* after = arena.allocate({4});
  arena.allocate({1});
  lock_page(span, 100);
  arena.free(span);
  g_hooked = &arena;
  g_neighbours[0] = before;
  g_neighbours[1] = after;
  fake::on_purge([] {
    if (Span* neighbour = std::exchange(g_neighbours[purges() % 2], nullptr)) g_hooked->free(neighbour);
    if (g_others != nullptr) g_hooked->free(g_others);
    g_others = g_hooked->allocate({3});
    pages::mark(address(g_others), bytes(g_others), 9);
  });
  arena.purge(0);
  fake::on_purge(nullptr);
  EXPECT_TRUE(pages::are_marked(address(g_others), bytes(g_others), 9));
  arena.free(g_others);
  expect_conserved(arena);
  arena.purge(0);
  EXPECT_EQ(arena.figures().dirty, kUnitSize);
  expect_conserved(arena);
}

size_t g_fork_at = 0;

// A handler forks between two calls; what the child has taken back and used meanwhile stays untouched.
TEST(Arena, APurgeThatIsRefusedEndsWhereItWasTakenBack) {
  Arena arena;
  for (size_t at = 1; at <= 8; ++at) {
    Span* span = arena.allocate({64});
    arena.allocate({1});
    lock_page(span, 100);
    arena.free(span);
    g_hooked = &arena;
    g_others = nullptr;
    g_fork_at = purges() + at;
    fake::on_purge([] {
      if (purges() + 1 != g_fork_at) return;
      LockGuard guard(g_hooked->lock(), kForkToken);
      g_hooked->after_fork_in_child();
    });
    arena.purge(0);
    EXPECT_EQ(purges(), g_fork_at);
    fake::on_purge(nullptr);
    fake::unlock_pages(address(span), bytes(span));
    EXPECT_EQ(arena.figures().dirty, Units{64}.bytes());
    expect_conserved(arena);
    arena.purge(0);
  }
}

// ---- random use against a model -----------------------------------------------------------------

constexpr size_t kEnough = 96 * kMiB;

// By seed, and by whether purging releases the charge.
class ArenaModel : public testing::TestWithParam<std::tuple<uint32_t, bool>> {
 protected:
  void play(bool failing) {
    auto [seed, uncommits] = GetParam();
    fake::limit_committed(kEnough);
    fake::set_purge_uncommits(uncommits);
    std::mt19937 random(seed);
    std::vector<uint8_t> decisions(RH_THREAD_SANITIZER ? 10'000 : 30'000);  // of one thread
    for (uint8_t& byte : decisions) byte = static_cast<uint8_t>(random());
    Arena arena;
    ArenaPlayer(arena, Input(decisions.data(), decisions.size()), failing).play();
  }
};

TEST_P(ArenaModel, IsConservedUnderRandomUse) { play(false); }
TEST_P(ArenaModel, IsConservedWhileCallsFail) { play(true); }

INSTANTIATE_TEST_SUITE_P(Seeds, ArenaModel, testing::Combine(testing::Range(1u, 4u), testing::Bool()));

// ---- where purging releases the charge ----------------------------------------------------------

TEST(Arena, WhatWasUncommittedIsCommittedAgainBeforeUse) {
  fake::set_purge_uncommits(true);
  Arena arena;
  Span* span = arena.allocate({64});
  pages::mark(address(span), bytes(span), 1);
  arena.free(span);
  size_t before = fake::committed_bytes();
  EXPECT_EQ(arena.purge(0), Units{64}.bytes());
  EXPECT_EQ(fake::committed_bytes(), before - Units{64}.bytes());
  expect_conserved(arena);
  span = arena.allocate({64}, {1}, Prefer::zero);
  ASSERT_NE(span, nullptr);
  EXPECT_TRUE(span->zero);
  EXPECT_TRUE(pages::are_zero(address(span), bytes(span)));
  expect_conserved(arena);
}

TEST(Arena, WithoutChargeWhatIsUncommittedStaysSo) {
  fake::set_purge_uncommits(true);
  Arena arena;
  Span* all = arena.allocate({256});
  arena.free(all);
  arena.purge(0);
  fake::fail_all(fake::Call::commit, true);
  // Memory committed ahead is used up, then nothing is left.
  while (arena.allocate({1}) != nullptr) {}
  expect_conserved(arena);
  fake::fail_all(fake::Call::commit, false);
  EXPECT_NE(arena.allocate({256}), nullptr);
  expect_conserved(arena);
}

TEST(Arena, LengthensOverWhatIsUncommitted) {
  fake::set_purge_uncommits(true);
  Arena arena;
  Span* span = arena.allocate({4});
  Span* next = arena.allocate({60});
  Span* guard = arena.allocate({1});
  ASSERT_EQ(next, span + 4);
  ASSERT_EQ(guard, next + 60);
  arena.free(next);
  arena.purge(0);
  fake::fail_all(fake::Call::commit, true);
  EXPECT_FALSE(arena.lengthen(span, {30}));
  fake::fail_all(fake::Call::commit, false);
  ASSERT_TRUE(arena.lengthen(span, {30}));
  EXPECT_EQ(span->units, 30u);
  pages::mark(address(span), bytes(span), 2);
  expect_conserved(arena);
}

// ---- nobody waits for the OS ---------------------------------------------------------------------

size_t calls_made, calls_under_lock;

void count_calls() {
  ++calls_made;
  if (g_hooked->lock().held_by(platform::thread_token())) ++calls_under_lock;
}

void grow_and_shrink(Arena& arena) {
  std::vector<Span*> spans;
  for (size_t units : {1u, 100u, 3000u, 7u, 10000u}) spans.push_back(arena.allocate({units}));
  // Further than memory is committed ahead anywhere.
  spans.push_back(arena.allocate({1}, Units::holding(64 * kMiB)));
  ASSERT_TRUE(arena.lengthen(spans.back(), {500}));
  for (Span* span : spans) arena.free(span);
  arena.purge(0);
  for (size_t units : {3u, 100u, 3000u}) EXPECT_NE(arena.allocate({units}), nullptr);
}

// Whoever wants what others have just freed does not wait for the OS to find more for somebody else.
void expect_calls_without_lock() {
  Arena arena;
  arena.allocate({1});  // opens the realm
  g_hooked = &arena;
  fake::on_memory_call(count_calls);
  grow_and_shrink(arena);
  fake::on_memory_call(nullptr);
  EXPECT_GT(calls_made, 10u);
  EXPECT_EQ(calls_under_lock, 0u) << "of " << calls_made;
  expect_conserved(arena);
}

TEST(Arena, CallsTheOSWithItsLockReleased) { expect_calls_without_lock(); }

TEST(Arena, CallsTheOSWithItsLockReleasedWherePurgesUncommit) {
  fake::set_purge_uncommits(true);
  expect_calls_without_lock();
}

// ---- while one thread makes memory usable --------------------------------------------------------

// Calls `meanwhile` within the first call to the OS that `wanted` units lead to.
void while_growing(Arena& arena, size_t wanted, void (*meanwhile)()) {
  static void (*the_hook)();
  the_hook = meanwhile;
  g_hooked = &arena;
  fake::on_memory_call([] {
    fake::on_memory_call(nullptr);
    the_hook();
  });
  arena.allocate({wanted});
}

// That thread does not come back.
void while_growing_for_ever(Arena& arena, size_t wanted, void (*meanwhile)()) {
  static void (*the_rest)();
  the_rest = meanwhile;
  EXPECT_EXIT(while_growing(arena, wanted,
                            [] {
                              the_rest();
                              exit(testing::Test::HasFailure() ? 1 : 0);
                            }),
              testing::ExitedWithCode(0), "");
}

constexpr size_t kMuch = 1000;

void uncommit_much(Arena& arena) {
  fake::set_purge_uncommits(true);
  Span* much = arena.allocate({kMuch});
  arena.free(much);
  arena.purge(0);
}

void expect_much() {
  ASSERT_NE(g_hooked->allocate({kMuch}), nullptr);
  ASSERT_NE(g_hooked->allocate({kMuch}), nullptr);
  expect_conserved(*g_hooked);
}

void fork_in_another_thread() {
  fake::become(fake::make_thread());
  LockGuard guard(g_hooked->lock(), kForkToken);
  g_hooked->after_fork_in_child();
}

void fork_in_another_thread_under_its_lock() {
  fake::become(fake::make_thread());
  LockGuard guard(g_hooked->lock());
  g_hooked->after_fork_in_child();
}

void terminate() {
  fake::set_terminated(platform::thread_token());
  fake::become(fake::make_thread());
}

TEST(Arena, WhatIsFreeIsHadWhileOneGrows) {
  Arena arena;
  auto spans = apart(arena, 2, 4);
  arena.free(spans[0]);
  while_growing(arena, kMuch, [] {
    Span* span = g_hooked->allocate({4});
    EXPECT_NE(span, nullptr);
    g_hooked->free(span);
    // As in a signal handler, which cannot wait for its own thread.
    EXPECT_EQ(g_hooked->allocate({kMuch}), nullptr);
  });
  expect_conserved(arena);
}

// As after the overflow of a stack, which the program handled.
TEST(Arena, GrowthThatItsThreadHasLeftIsTakenBack) {
  Arena arena;
  arena.allocate({1});
  while_growing_for_ever(arena, kMuch, [] {
    EXPECT_EQ(g_hooked->allocate({kMuch}), nullptr);
    fake::set_has_left_call(true);
    expect_much();
    fake::set_has_left_call(false);
  });
}

TEST(Arena, AChildHasWhatAnotherThreadWasGrowingBy) {
  Arena arena;
  arena.allocate({1});
  while_growing_for_ever(arena, kMuch, [] {
    fork_in_another_thread();
    expect_much();
  });
  while_growing_for_ever(arena, kMuch, [] {
    fork_in_another_thread_under_its_lock();
    expect_much();
  });
}

TEST(Arena, AChildHasWhatAnotherThreadWasCommittingAgain) {
  Arena arena;
  uncommit_much(arena);
  while_growing_for_ever(arena, kMuch, [] {
    fork_in_another_thread();
    expect_conserved(*g_hooked);
    expect_much();
  });
  while_growing_for_ever(arena, kMuch, [] {
    fork_in_another_thread_under_its_lock();
    expect_much();
  });
}

// A signal handler that forks may have interrupted the very thread that grows: that thread goes on in the child.
TEST(Arena, AChildsThreadThatWasGrowingGoesOn) {
  Arena arena;
  arena.allocate({1});
  while_growing(arena, kMuch, [] {
    LockGuard guard(g_hooked->lock(), kForkToken);
    g_hooked->after_fork_in_child();
  });
  expect_conserved(arena);
  expect_much();
}

TEST(Arena, WhatATerminatedThreadWasMakingUsableIsHad) {
  Arena arena;
  arena.allocate({1});
  while_growing_for_ever(arena, kMuch, [] {
    terminate();
    expect_much();
  });
  uncommit_much(arena);
  while_growing_for_ever(arena, kMuch, [] {
    terminate();
    expect_much();
  });
}

// ---- at the end of the process ------------------------------------------------------------------

TEST(Arena, ALockLeftBehindIsTakenOverAtTheEnd) {
  Arena arena;
  Span* span = arena.allocate({4});
  arena.lock().acquire(77);  // a thread that will never come back
  fake::set_others_are_gone(true);
  Span* fresh = arena.allocate({4}, {8});
  ASSERT_NE(fresh, nullptr);
  EXPECT_TRUE(inconsistent());
  EXPECT_EQ(address(fresh) % Units{8}.bytes(), 0u);
  pages::mark(address(fresh), bytes(fresh), 3);
  // What the lock guards cannot be trusted: nothing is freed any more.
  arena.free(span);
  EXPECT_NE(arena.allocate({4}), span);
  EXPECT_EQ(arena.purge(0), 0u);
  SpanList list;
  EXPECT_EQ(take_some(arena, &list, 3, 5), Units{3});
}

TEST(Arena, IsConservedAcrossPieces) {
  // Another mapping takes the place of the next pieces.
  Arena arena;
  ASSERT_NE(arena.allocate({1}), nullptr);
  if (platform::places_freely()) {
    fake::occupy(g_realm.base() + 64 * kMiB, kUnitSize);
    fake::occupy(g_realm.base() + 200 * kMiB, kUnitSize);
  }
  std::vector<Span*> spans;
  for (int step = 0; step < 40; ++step) {
    spans.push_back(arena.allocate({Units::holding(6 * kMiB)}));
    ASSERT_NE(spans.back(), nullptr);
    pages::mark(address(spans.back()), bytes(spans.back()), static_cast<uint64_t>(step));
  }
  expect_conserved(arena);
  for (size_t index = 0; index < spans.size(); ++index) {
    ASSERT_TRUE(pages::are_marked(address(spans[index]), bytes(spans[index]), index));
    arena.free(spans[index]);
  }
  expect_conserved(arena);
  arena.purge(0);
  expect_conserved(arena);
}

TEST(Arena, EveryCallFailingInTurn) {
  Arena arena;
  for (fake::Call kind : {fake::Call::reserve, fake::Call::commit, fake::Call::purge}) {
    for (size_t nth = 1;; ++nth) {
      size_t before = fake::calls(kind);
      fake::fail_nth(kind, nth);
      std::vector<Span*> spans;
      for (size_t units : {1u, 100u, 3000u, 7u})
        if (Span* span = arena.allocate({units}, {4})) spans.push_back(span);
      for (Span* span : spans) arena.free(span);
      arena.purge(0);
      bool reached = fake::calls(kind) - before >= nth;
      fake::fail_nth(kind, 0);
      expect_conserved(arena);
      Span* span = arena.allocate({3000});
      ASSERT_NE(span, nullptr);
      ASSERT_TRUE(!span->zero || pages::are_zero(address(span), bytes(span)));
      arena.free(span);
      if (!reached) break;
      ASSERT_LT(nth, 200u);
    }
  }
}

}  // namespace
}  // namespace rh
