// Kernels whose pages are as long as a unit, or longer: nothing goes back, moves or changes but whole pages, and nobody
// else's with it. That every call to the OS is of whole pages is seen to by the fake platform. The suites of the arena
// and the heap run over such pages too (CMakeLists.txt).
#include "platform/pages.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "arena/growth.h"
#include "heap/guards.h"
#include "heap/heap.h"
#include "heap/idle.h"
#include "heap/large.h"
#include "support/arena_player.h"
#include "support/heaps.h"

namespace rh {
namespace {

constexpr size_t kKiB = 1024;

class LongPages : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override { fake::set_page_size(GetParam()); }

  static size_t page() { return GetParam(); }
  static Units units() { return units_of_page(); }

  // Pages of one arena, all of them written to; a unit behind keeps them from merging with what follows.
  Span* used(size_t pages) {
    Span* span = arena.allocate({pages * units().count}, units());
    arena.allocate({1});
    pages::mark(address(span), bytes(span), 1);
    return span;
  }

  Arena arena;
};

TEST_P(LongPages, APageGoesBackWhenTheLastUnitOfItIsFree) {
  Span* span = used(1);
  Span* first = span;
  for (size_t left = units().count; left > 1; --left) {
    Span* rest = arena.cut(span, {1});
    arena.free(span);
    EXPECT_EQ(arena.purge(0), 0u);
    expect_conserved(arena);
    span = rest;
  }
  EXPECT_TRUE(pages::are_marked(address(span), kUnitSize, 1));
  arena.free(span);
  EXPECT_EQ(arena.purge(0), page() > kUnitSize ? page() : kUnitSize);
  EXPECT_EQ(arena.figures().dirty, 0u);
  EXPECT_TRUE(pages::are_zero(address(first), units().bytes()));
  expect_conserved(arena);
}

TEST_P(LongPages, WhatIsCleanBesideItGoesBackWithIt) {
  Span* span = used(3);
  arena.free(span);
  arena.purge(0);
  // The middle of what is clean now is used and freed.
  Span* before = arena.allocate({units().count + 1}, units(), Prefer::zero);
  ASSERT_EQ(before, span);
  Span* dirty = arena.cut(before, units());
  pages::mark(address(dirty), kUnitSize, 2);
  arena.free(dirty);
  arena.purge(0);
  EXPECT_EQ(arena.figures().dirty, 0u);
  EXPECT_TRUE(pages::are_zero(address(dirty), 2 * units().bytes()));
  expect_conserved(arena);
}

TEST_P(LongPages, WhatSharesAPageWithWhatIsInUseStays) {
  Span* span = used(4);
  Span* middle = arena.cut(span, {1});
  Span* last = arena.cut(middle, {4 * units().count - 2});
  const size_t most = bytes(middle);
  arena.free(middle);
  const size_t returned = arena.purge(0);
  EXPECT_EQ(returned, page() > kUnitSize ? 2 * page() : most);
  EXPECT_EQ(arena.figures().dirty, most - returned);
  for (Span* kept : {span, last}) EXPECT_TRUE(pages::are_marked(address(kept), kUnitSize, 1));
  expect_conserved(arena);
}

TEST_P(LongPages, ALockedPageKeepsItselfAlone) {
  Span* span = used(64);
  fake::lock_pages(address(span) + 5 * page(), page());
  arena.free(span);
  const size_t kept = page() > kUnitSize ? page() : kUnitSize;
  EXPECT_EQ(arena.purge(0), 64 * units().bytes() - kept);
  EXPECT_EQ(arena.figures().dirty, kept);
  expect_conserved(arena);
}

// What a program changed ends with its block; the blocks that share its first page and its last keep what they hold.
TEST_P(LongPages, WhatAProgramChangedIsRenewedWithoutItsNeighbours) {
  constexpr size_t kSize = 272 * kKiB;
  std::vector<unsigned char*> blocks;
  for (unsigned index = 0; index < 64; ++index) {
    blocks.push_back(static_cast<unsigned char*>(allocate(kSize)));
    fill(blocks.back(), kSize, index);
  }
  for (unsigned index = 0; index < 64; index += 2) {
    large::note_altered(blocks[index], kSize);
    deallocate(blocks[index]);
  }
  for (unsigned index = 1; index < 64; index += 2) ASSERT_TRUE(intact(blocks[index], kSize, index)) << index;
}

TEST_P(LongPages, LongBlocksAreWholePagesAndCanMove) {
  constexpr size_t kSize = 5 * kMiB + 1;
  unsigned char* block = static_cast<unsigned char*>(allocate(kSize));
  EXPECT_EQ(address_of(block) % page(), 0u);
  EXPECT_EQ(usable_size(block, "test") % page(), 0u);
  unsigned char* behind = static_cast<unsigned char*>(allocate(3 * kMiB));
  fill(block, kSize, 1);
  fill(behind, 3 * kMiB, 2);
  const size_t moves = fake::calls(fake::Call::move);
  block = static_cast<unsigned char*>(resize_by_moving(find_block(block), 3 * kSize));
  ASSERT_NE(block, nullptr);
  EXPECT_GT(fake::calls(fake::Call::move), moves);
  EXPECT_TRUE(intact(block, kSize, 1));
  EXPECT_TRUE(intact(behind, 3 * kMiB, 2));
}

// Blocks of a page that was asked for are alone on their pages: the program may protect them.
TEST_P(LongPages, WhoAsksForPagesHasThemAlone) {
  for (size_t size : {size_t{100}, page() + 1, 3 * page(), 5 * page() - 1}) {
    if (page() < kUnitSize) continue;
    void* block = allocate_aligned(page(), size);
    EXPECT_EQ(address_of(block) % page(), 0u);
    EXPECT_GE(usable_size(block, "test"), align_up(size, page()));
  }
}

TEST_P(LongPages, ZerosAreZeroToTheirEnd) {
  for (size_t size = 4 * kMiB; size < 4 * kMiB + 200 * kKiB; size += 48 * kKiB) {
    void* block = allocate(size);
    std::memset(block, 1, size);
    deallocate(block);
    unsigned char* zeroed = static_cast<unsigned char*>(allocate_zeroed(size));
    for (size_t at = 0; at < size; at += 8) ASSERT_EQ(zeroed[at] | zeroed[size - 1], 0);
    deallocate(zeroed);
  }
}

TEST_P(LongPages, IdleMemoryGoesBack) {
  for (size_t size : {100, 3000, 20000, 100000, 2000000})
    for (void* block : used_blocks(size, 16 * kMiB)) deallocate(block);
  idle::trim();
  EXPECT_LT(g_arena.figures().dirty + g_arena.figures().in_use, kMiB);
}

TEST_P(LongPages, GuardedBlocksAreThereWherePagesAreShort) {
  deallocate(allocate(1));
  guards::set_every(1);
  EXPECT_EQ(guards::are_possible(), page() == platform::kPageSize);
  for (int count = 0; count < 100; ++count) {
    void* block = allocate(100);
    ASSERT_NE(block, nullptr);
    std::memset(block, 1, 100);
    if (page() != platform::kPageSize) EXPECT_FALSE(find_block(block).is_guarded());
    deallocate(block);
  }
  guards::set_every(0);
}

INSTANTIATE_TEST_SUITE_P(Kib, LongPages, testing::Values(4 * kKiB, 16 * kKiB, 64 * kKiB),
                         [](const auto& given) { return std::to_string(given.param / kKiB); });

}  // namespace
}  // namespace rh
