#include "slabs/slab.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>

#include "support/slabs.h"

namespace rh::slab {
namespace {

TEST(Slab, EveryUnitLeadsToTheHead) {
  for (size_t index = 0; index < size_class::kCount; ++index) {
    Span* slab = make(index);
    EXPECT_EQ(slab->kind.load(), SpanKind::slab);
    EXPECT_EQ(slab->owner.load(), kOwner);
    for (uint32_t unit = 0; unit < slab->units; ++unit) EXPECT_EQ(head(slab + unit), slab);
    // A block in a later unit must not look like one of a thread that has no heap.
    EXPECT_EQ(outstanding(slab), 0u);
    expect_conserved(slab);
    finish(slab);
    for (uint32_t unit = 0; unit < slab->units; ++unit) EXPECT_EQ(slab[unit].kind.load(), SpanKind::none);
    EXPECT_EQ(slab->owner.load(), nullptr);
    g_arena.free(slab);
  }
}

TEST(Slab, CarvesAllOfItInAddressOrder) {
  for (size_t index = 0; index < size_class::kCount; ++index) {
    Span* slab = make(index);
    uintptr_t next = g_realm.address(slab);
    for (Block* block : take_all(slab)) {
      ASSERT_EQ(address_of(block), next);
      next += properties(slab).size;
    }
    ASSERT_EQ(next, g_realm.address(slab) + properties(slab).capacity * size_t{properties(slab).size});
    ASSERT_EQ(outstanding(slab), properties(slab).capacity);
    finish(slab);
    g_arena.free(slab);
  }
}

TEST(Slab, CarvesAPageAtFirstAndThenTwo) {
  Span* slab = make(index_of(64));
  EXPECT_EQ(length(carve(slab, 2).blocks), 2u);
  EXPECT_EQ(length(carve(slab).blocks), 64u);
  EXPECT_EQ(length(take(slab).blocks), 128u);
  EXPECT_EQ(outstanding(slab), 194u);
  EXPECT_EQ(length(take(slab).blocks), 62u);  // the rest
  EXPECT_EQ(take(slab).blocks, nullptr);
}

TEST(Slab, CarvesOneBlockWhereItHasAPageToItself) {
  Span* slab = make(index_of(8192));
  EXPECT_EQ(length(carve(slab).blocks), 1u);
  EXPECT_EQ(length(take(slab).blocks), 1u);
}

TEST(Slab, FreshMemoryIsZeroButForTheLinks) {
  Span* slab = make(index_of(128));
  ASSERT_TRUE(slab->zero);
  Taken taken = take(slab);
  EXPECT_TRUE(taken.zero);
  static const char zeros[128] = {};
  for (Block* block = taken.blocks; block != nullptr; block = block->next)
    ASSERT_EQ(std::memcmp(block + 1, zeros, 128 - sizeof(Block)), 0);
  // Used memory is not zero, whoever freed it.
  std::vector<Block*> blocks;
  for (Block* block = taken.blocks; block != nullptr; block = block->next) blocks.push_back(block);
  free_local(slab, blocks[0]);
  EXPECT_FALSE(take(slab).zero);
  give_back(slab, blocks[1], blocks[1], 1);
  EXPECT_FALSE(take(slab).zero);
  EXPECT_TRUE(take(slab).zero);
  slab->zero = false;
  EXPECT_FALSE(take(slab).zero);
}

TEST(Slab, GivesLocalFreesThenReturnedThenFreshBlocks) {
  Span* slab = make(index_of(256));
  Block* first = take(slab).blocks;
  Block* second = first->next;
  Block* third = second->next;
  free_local(slab, first);
  third->next = nullptr;
  give_back(slab, third, third, 1);
  expect_conserved(slab);
  Taken taken = take(slab);
  EXPECT_EQ(taken.blocks, first);
  EXPECT_EQ(length(taken.blocks), 1u);
  taken = take(slab);
  EXPECT_EQ(taken.blocks, third);
  EXPECT_EQ(length(taken.blocks), 1u);
  taken = take(slab);
  EXPECT_EQ(address_of(taken.blocks), g_realm.address(slab) + (2 * size_t{properties(slab).carve} - 1) * 256);
  expect_conserved(slab);
}

// A string at a page's end is read beyond it: by then the next page has been touched.
TEST(Slab, ThePageBehindABlockThatEndsWithItsPageIsCarvedAsWell) {
  for (size_t size : {16u, 32u, 48u, 64u, 80u, 128u, 320u, 512u}) {
    Span* slab = make(index_of(size));
    for (Taken taken = take(slab); taken.blocks != nullptr; taken = take(slab)) {
      if (slab->carved.load() == properties(slab).capacity) break;
      const uintptr_t end = g_realm.address(slab) + slab->carved.load() * size;
      EXPECT_LE(end % kPage, kPage - 64) << size;
      EXPECT_NE(end % kPage, 0u) << size;
    }
    expect_conserved(slab);
  }
}

TEST(Slab, WhatComesBackTogetherIsLinkedWhole) {
  Span* slab = make(index_of(512));
  std::vector<Block*> blocks = take_all(slab);
  blocks[0]->next = blocks[1];
  blocks[1]->next = blocks[2];
  give_back(slab, blocks[0], blocks[2], 3);
  blocks[3]->next = blocks[4];
  give_back(slab, blocks[3], blocks[4], 2);
  expect_conserved(slab);
  EXPECT_EQ(slab->others.returned(), 5u);
  std::set<Block*> seen;
  for (Block* block = take(slab).blocks; block != nullptr; block = block->next) seen.insert(block);
  EXPECT_EQ(seen, std::set<Block*>(blocks.begin(), blocks.begin() + 5));
}

TEST(Slab, AsksToBeLookedAtAfterSoManyFrees) {
  Span* slab = make(index_of(16));
  std::vector<Block*> blocks = take_all(slab);
  size_t next = 0;
  for (unsigned mark : {1u, 2u, 7u, 100u}) {
    arm(slab, mark);
    for (unsigned count = 1; count <= mark; ++count) {
      ASSERT_EQ(free_local(slab, blocks[next++]), count == mark);
      ASSERT_EQ(outstanding(slab), blocks.size() - next);
      expect_conserved(slab);
    }
  }
}

TEST(Slab, WhatIsNotCountedGoesIntoTheBin) {
  for (size_t index : {index_of(16), index_of(24), index_of(2048), index_of(size_class::kMostBinned)}) {
    Span* slab = make(index);
    std::vector<Block*> blocks = take_all(slab);
    Block* bin = nullptr;
    for (Block* block : blocks) {
      ASSERT_FALSE(free_local(slab, block, &bin));
      ASSERT_EQ(bin, block);
    }
    EXPECT_EQ(outstanding(slab), blocks.size());
    expect_conserved(slab);
    EXPECT_EQ(take(slab).blocks, nullptr);
    give_back_bin(slab, bin);
    EXPECT_EQ(outstanding(slab), 0u);
    expect_conserved(slab);
  }
}

// Long ones do not wait in a bin while the owner sleeps.
TEST(Slab, BlocksOfMoreThanAPageAreAlwaysCounted) {
  for (size_t size : {size_class::kMostBinned + 1, size_t{10000}, kMaxSmall}) {
    Span* slab = make(index_of(size));
    Block* bin = nullptr;
    for (Block* block : take_all(slab)) ASSERT_FALSE(free_local(slab, block, &bin));
    EXPECT_EQ(bin, nullptr);
    EXPECT_EQ(outstanding(slab), 0u);
    expect_conserved(slab);
  }
}

// However many come between two refills.
TEST(Slab, TheBooksStandWhateverGoesInAndOutOfTheBin) {
  Span* slab = make(index_of(64));
  size_t all = take_all(slab).size();
  Block* block = reinterpret_cast<Block*>(g_realm.address(slab));
  unsigned looks = 0;
  for (unsigned count = 0; count < 200'000; ++count) {
    Block* bin = nullptr;
    looks += free_local(slab, hand_out(block), &bin);
    ASSERT_EQ(bin, block);
    ASSERT_EQ(outstanding(slab), all);
  }
  EXPECT_LE(looks, 200'000u >> 16);
  hand_out(block);
  arm(slab, 2);
  EXPECT_EQ(outstanding(slab), all);
  EXPECT_FALSE(free_local(slab, block));
  EXPECT_TRUE(free_local(slab, block + 4));
  EXPECT_EQ(length(take(slab).blocks), 2u);
  expect_conserved(slab);
}

TEST(Slab, KnowsWhereABlockStarts) {
  for (size_t index = 0; index < size_class::kCount; ++index) {
    Span* slab = make(index);
    char* start = reinterpret_cast<char*>(g_realm.address(slab));
    for (size_t offset = 0; offset < kUnitSize; ++offset)
      ASSERT_EQ(starts_block(slab, start + offset), offset % size_class::size_of(index) == 0) << index << " " << offset;
    finish(slab);
    g_arena.free(slab);
  }
}

TEST(Slab, ArmingAnewKeepsTheBooks) {
  Span* slab = make(index_of(16));
  std::vector<Block*> blocks = take_all(slab);
  arm(slab, 10);
  for (int count = 0; count < 4; ++count) free_local(slab, blocks[static_cast<size_t>(count)]);
  arm(slab, 2);
  expect_conserved(slab);
  EXPECT_EQ(slab->free_count, 4);
  EXPECT_FALSE(free_local(slab, blocks[4]));
  EXPECT_TRUE(free_local(slab, blocks[5]));
}

TEST(Slab, CountsAgainWhatAVanishedThreadHadLinked) {
  Span* slab = make(index_of(64));
  std::vector<Block*> blocks = take_all(slab);
  arm(slab, 50);
  free_local(slab, blocks[0]);
  // Linked, but the thread stopped there.
  blocks[1]->next = slab->free;
  slab->free = blocks[1];
  recount(slab);
  expect_conserved(slab);
  EXPECT_EQ(outstanding(slab), blocks.size() - 2);
  EXPECT_EQ(length(take(slab).blocks), 2u);
}

// Its next free is looked at: it does not go into the bin of another slab's blocks.
TEST(Slab, CountsOnAfterAVanishedThreadHadReachedTheMark) {
  Span* slab = make(index_of(64));
  std::vector<Block*> blocks = take_all(slab);
  slab->state = SlabState::full;
  arm(slab, 1);
  EXPECT_TRUE(free_local(slab, blocks[0]));
  recount(slab);
  Block* bin = nullptr;
  EXPECT_TRUE(free_local(slab, blocks[1], &bin));
  EXPECT_EQ(bin, nullptr);
  EXPECT_EQ(outstanding(slab), blocks.size() - 2);
}

// Wherever in a free a thread was terminated.
TEST(Slab, CountsAgainWhatATerminatedThreadWasFreeing) {
  if (!platform::kThreadsAreTerminated) GTEST_SKIP() << "threads end by themselves here";
  for (int step = 1; step <= 3; ++step) {
    Span* slab = make(index_of(64));
    std::vector<Block*> blocks = take_all(slab);
    arm(slab, 50);
    free_local(slab, blocks[0]);
    mark_free(slab, blocks[1]);
    if (step >= 2) ++slab->freed.begun;
    blocks[1]->next = slab->free;
    if (step >= 3) slab->free = blocks[1];
    unsigned freed = step >= 3 ? 2 : 1;
    EXPECT_EQ(length(take(slab).blocks), freed);
    EXPECT_EQ(outstanding(slab), blocks.size());
    expect_conserved(slab);
  }
}

// Else each list would be followed to be counted.
TEST(Slab, FreesThatHaveBegunAreThoseThatAreCounted) {
  if (!platform::kThreadsAreTerminated) GTEST_SKIP() << "threads end by themselves here";
  Span* slab = make(index_of(64));
  std::vector<Block*> blocks = take_all(slab);
  Block* bin = nullptr;
  free_local(slab, blocks[0], &bin);
  ASSERT_EQ(bin, blocks[0]);
  arm(slab, 2);
  EXPECT_EQ(slab->freed.begun, 0);
  for (size_t index = 1; index < 6; ++index) {
    if (free_local(slab, blocks[index])) arm(slab, 2);
    EXPECT_EQ(slab->freed.begun, index);
  }
  recount(slab);
  EXPECT_EQ(slab->freed.begun, 5);
}

TEST(Slab, AFreeBlockSaysSo) {
  for (size_t size : {size_t{16}, size_t{48}, size_t{5000}, kMaxSmall}) {
    Span* slab = make(index_of(size));
    for (Block* block : take_all(slab)) {
      EXPECT_FALSE(is_marked(slab, block));
      free_local(slab, block);
      EXPECT_TRUE(is_marked(slab, block));
    }
  }
}

// Content that was copied from a free block means nothing elsewhere.
TEST(Slab, AMarkMeansOneBlock) {
  Span* slab = make(index_of(64));
  std::vector<Block*> blocks = take_all(slab);
  free_local(slab, blocks[0]);
  std::memcpy(static_cast<void*>(blocks[1]), blocks[0], 64);
  EXPECT_FALSE(is_marked(slab, blocks[1]));
  free_local(slab, blocks[1]);
  EXPECT_EQ(length(take(slab).blocks), 2u);
}

// A program that resizes blocks carries about what lay in them before it got them.
TEST(Slab, AMarkDiesWithItsSlab) {
  Span* slab = make(index_of(64));
  std::vector<Block*> blocks = take_all(slab);
  for (Block* block : blocks) free_local(slab, block);
  char content[64];
  std::memcpy(content, blocks[5], sizeof(content));
  finish(slab);
  g_arena.free(slab);
  Span* next = make(index_of(64));
  ASSERT_EQ(next, slab);
  ASSERT_EQ(take_all(next), blocks);
  std::memcpy(static_cast<void*>(blocks[5]), content, sizeof(content));
  EXPECT_FALSE(is_marked(next, blocks[5]));
  free_local(next, blocks[5]);
}

// ---- any order of taking and freeing, in every class --------------------------------------------

class SlabModel : public testing::TestWithParam<uint32_t> {};

TEST_P(SlabModel, IsConservedUnderRandomUse) {
  std::mt19937 random(GetParam());
  for (size_t index = 0; index < size_class::kCount; ++index) {
    Span* slab = make(index);
    std::set<Block*> live;
    size_t size = properties(slab).size;
    auto some_live = [&] {
      auto found =
          live.lower_bound(reinterpret_cast<Block*>(g_realm.address(slab) + random() % Units{slab->units}.bytes()));
      Block* block = found == live.end() ? *live.begin() : *found;
      live.erase(block);
      std::memset(static_cast<void*>(block), 0xee, size);
      return block;
    };
    for (int step = 0; step < 400; ++step) {
      switch (random() % 6) {
      case 0:
        for (Block *block = take(slab).blocks, *next; block != nullptr; block = next) {
          next = block->next;
          ASSERT_TRUE(live.insert(block).second) << "handed out twice";
          ASSERT_EQ((address_of(block) - g_realm.address(slab)) % size, 0u);
          std::memset(static_cast<void*>(block), 0xcc, size);
        }
        break;
      case 1: {  // a batch from another thread
        Block *first = nullptr, *last = nullptr;
        unsigned count = 0, most = 1 + random() % 20;
        for (; count < most && !live.empty(); ++count) {
          Block* block = some_live();
          block->next = first;
          first = block;
          if (last == nullptr) last = block;
        }
        if (count != 0) give_back(slab, first, last, count);
        break;
      }
      case 2: arm(slab, random() % 3 == 0 ? kNever : 1 + random() % 50); break;
      default:
        if (!live.empty()) free_local(slab, some_live());
      }
      ASSERT_EQ(outstanding(slab), live.size());
      ASSERT_NO_FATAL_FAILURE(expect_conserved(slab));
    }
    finish(slab);
    g_arena.free(slab);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SlabModel, testing::Range(1u, 4u));

TEST(Slab, WhatIsCarvedIsFreeUntilItIsNotedOtherwise) {
  if (!kExactSizes) GTEST_SKIP() << "this build does not keep notes";
  for (size_t size : {size_t{16}, size_t{48}, size_t{5000}, kMaxSmall}) {
    Span* slab = make(index_of(size));
    uintptr_t start = g_realm.address(slab);
    auto alive = [&](const void* pointer) { return is_live(slab, pointer, address_of(pointer) - start); };
    // Sizes left there by earlier blocks.
    for (uintptr_t at = start; at < start + Units{slab->units}.bytes(); at += kBlockAlign)
      g_realm.sizes().note(reinterpret_cast<void*>(at), 7, true);
    void* beyond = reinterpret_cast<void*>(start + properties(slab).size * size_t{slab->carved.load()});
    EXPECT_FALSE(alive(beyond));
    for (Block* block : take_all(slab)) {
      EXPECT_FALSE(alive(block));
      g_realm.sizes().note(block, properties(slab).size, size == 16);
      EXPECT_TRUE(alive(block));
      EXPECT_FALSE(alive(reinterpret_cast<char*>(block) + 8));
      if (size > 16) EXPECT_FALSE(alive(reinterpret_cast<char*>(block) + 16));
      note_free(slab, block);
      EXPECT_FALSE(alive(block));
    }
  }
}

}  // namespace
}  // namespace rh::slab
