// Free spans side by side that are not of one kind: what was used lies beside what never was, or went back to the OS.
#include <gtest/gtest.h>

#include "arena/arena.h"
#include "platform/fake/fake.h"
#include "support/arena_player.h"
#include "support/pages.h"

namespace rh {
namespace {

// What is free and clean behind what was used last.
Units clean_behind(const Span* last) {
  const Span* behind = last + last->units;
  return g_realm.contains(behind) && behind->kind.load() == SpanKind::free_clean ? Units{behind->units} : Units{};
}

TEST(Join, WhatIsTooShortIsLengthenedByWhatFollows) {
  Arena arena;
  Span* span = arena.allocate({8});
  pages::mark(address(span), bytes(span), 1);
  const Units behind = clean_behind(span);
  ASSERT_GE(behind.count, 4u);
  arena.free(span);
  Span* longer = arena.allocate({11});
  EXPECT_EQ(longer, span);
  EXPECT_EQ(longer->units, 11u);
  EXPECT_FALSE(longer->zero);
  EXPECT_EQ(arena.figures().dirty, 0u);
  EXPECT_EQ(clean_behind(longer), behind - Units{3});
  Span* rest = arena.allocate({1}, {1}, Prefer::zero);
  EXPECT_EQ(rest, longer + 11);
  EXPECT_TRUE(rest->zero);
  EXPECT_TRUE(pages::are_zero(address(rest), bytes(rest)));
  expect_conserved(arena);
}

TEST(Join, ByAsMuchAsIsMissingOfWhatLiesBefore) {
  Arena arena;
  Span* before = arena.allocate({10});
  Span* span = arena.allocate({8});
  Span* wall = arena.allocate({1});
  arena.free(before);
  arena.purge(0);
  arena.free(span);
  Span* longer = arena.allocate({12});
  EXPECT_EQ(longer, span - 4);
  EXPECT_EQ(before->kind.load(), SpanKind::free_clean);
  EXPECT_EQ(before->units, 6u);
  expect_conserved(arena);
  arena.free(longer);
  EXPECT_EQ(arena.figures().dirty, Units{12}.bytes());
  arena.free(wall);
  expect_conserved(arena);
}

TEST(Join, ByWhatLiesOnBothSides) {
  Arena arena;
  Span* before = arena.allocate({3});
  Span* span = arena.allocate({8});
  Span* behind = arena.allocate({2});
  arena.allocate({1});
  arena.free(before);
  arena.free(behind);
  arena.purge(0);
  arena.free(span);
  EXPECT_EQ(arena.allocate({13}), before);
  EXPECT_EQ(arena.figures().dirty, 0u);
  expect_conserved(arena);
}

// The OS has made more usable for it, beside what was free all along.
TEST(Join, ByWhatIsMadeUsableForIt) {
  if (!k64Bit) GTEST_SKIP() << "pieces need not follow each other";
  Arena arena;
  Span* span = arena.allocate({512});
  const Units longer = Units{span->units} + clean_behind(span) + Units{1};
  arena.free(span);
  EXPECT_EQ(arena.allocate(longer), span);
  expect_conserved(arena);
}

// On Windows what went back is to be committed again first. A span, and decommitted memory behind it that is too short
// to be used without it; as much of that as anyone may want elsewhere.
struct BesideDecommitted {
  BesideDecommitted() {
    fake::set_purge_uncommits(true);
    span = arena.allocate({80});
    behind = arena.allocate({100});
    arena.allocate({1});
    Span* elsewhere = arena.allocate({1000});
    Span* wall = arena.allocate({1});
    if (Units rest = clean_behind(wall); rest > Units{}) arena.allocate(rest);
    arena.free(behind);
    arena.free(elsewhere);
    arena.purge(0);
    pages::mark(address(span), Units{60}.bytes(), 1);
  }

  Arena arena;
  Span *span, *behind;
};

TEST(Join, ByWhatIsCommittedForIt) {
  if (!k64Bit) GTEST_SKIP() << "pieces need not follow each other";
  BesideDecommitted spans;
  Arena& arena = spans.arena;
  arena.free(spans.span);
  ASSERT_EQ(spans.behind->kind.load(), SpanKind::free_decommitted);
  Span* longer = arena.allocate({150});
  EXPECT_EQ(longer, spans.span);
  EXPECT_EQ(arena.figures().dirty, 0u);
  pages::mark(address(longer), bytes(longer), 2);
  expect_conserved(arena);
  arena.free(longer);
  expect_conserved(arena);
}

TEST(Join, ByWhatIsCleanAndWhatIsCommittedBehindThat) {
  if (!k64Bit) GTEST_SKIP() << "pieces need not follow each other";
  BesideDecommitted spans;
  Arena& arena = spans.arena;
  Span* untouched = arena.cut(spans.span, {60});
  arena.return_empty(untouched, platform::Purged::zero, {}, platform::thread_token());
  arena.free(spans.span);
  EXPECT_EQ(arena.allocate({115}), spans.span);
  expect_conserved(arena);
}

TEST(Join, NotWhereTheOsRefuses) {
  if (!k64Bit) GTEST_SKIP() << "pieces need not follow each other";
  BesideDecommitted spans;
  Arena& arena = spans.arena;
  arena.free(spans.span);
  fake::fail_all(fake::Call::commit, true);
  EXPECT_EQ(arena.allocate({150}), nullptr);
  expect_conserved(arena);
  fake::fail_all(fake::Call::commit, false);
  EXPECT_EQ(arena.allocate({150}), spans.span);
  expect_conserved(arena);
}

TEST(Join, NotWhereMostOfItWouldBeTouchedForTheFirstTime) {
  Arena arena;
  Span* span = arena.allocate({5});
  arena.free(span);
  Span* longer = arena.allocate({12});
  EXPECT_NE(longer, span);
  EXPECT_TRUE(longer->zero);
  EXPECT_EQ(arena.figures().dirty, Units{5}.bytes());
  expect_conserved(arena);
}

TEST(Join, NotForWhoWantsZeros) {
  Arena arena;
  Span* span = arena.allocate({8});
  arena.free(span);
  Span* zero = arena.allocate({11}, {1}, Prefer::zero);
  EXPECT_NE(zero, span);
  EXPECT_TRUE(zero->zero);
  expect_conserved(arena);
}

TEST(Join, NotWithWhatAnotherNodeTouched) {
  Arena arena;
  Span* span = arena.allocate({8});
  arena.free(span);
  fake::set_node(1);
  Span* longer = arena.allocate({11});
  EXPECT_NE(longer, span);
  EXPECT_EQ(arena.figures().dirty, Units{8}.bytes());
  fake::set_node(0);
  arena.free(longer);
  expect_conserved(arena);
}

// What is joined counts as held, as what is used does.
TEST(Join, NotBeyondALimit) {
  Arena arena;
  Span* span = arena.allocate({8});
  arena.free(span);
  const size_t held = arena.standing().held;
  arena.set_limit({.soft = Arena::kUnlimited, .hard = held + Units{2}.bytes()});
  Span* longer = arena.allocate({11});
  if (longer != nullptr) EXPECT_LE(arena.standing().held, held + Units{2}.bytes());
  arena.set_limit({});
  expect_conserved(arena);
}

}  // namespace
}  // namespace rh
