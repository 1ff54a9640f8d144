#include "slabs/slab.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "platform/fake/fake.h"
#include "support/slabs.h"

namespace rh::slab {
namespace {

constexpr size_t kPage = platform::kPageSize;

class Holes : public testing::Test {
 protected:
  void SetUp() override {
    if (!platform::kReplacesByZeros) GTEST_SKIP() << "there are no holes here";
  }
};
using HolesDeathTest = Holes;

void hand_back(Span* slab, Block* block) { give_back(slab, block, block, 1); }

// Pages of the slab on which `pinned` have no part, but others have.
size_t pages_without(const Span* slab, const std::set<Block*>& pinned) {
  size_t size = properties(slab).size, free = 0;
  uintptr_t start = g_realm.address(slab), end = start + properties(slab).capacity * size;
  for (uintptr_t page = start; page < end; page += kPage) {
    bool touched = std::any_of(pinned.begin(), pinned.end(), [&](const Block* block) {
      return address_of(block) < page + kPage && address_of(block) + size > page;
    });
    if (!touched) ++free;
  }
  return free;
}

// One block stays: every page but its own goes, and all blocks can be had again.
void expect_pages_of_one_kept(size_t index) {
  Span* slab = make(index);
  std::vector<Block*> blocks = take_all(slab);
  size_t size = properties(slab).size;
  for (Block* kept : {blocks.front(), blocks[blocks.size() / 2], blocks.back()}) {
    std::memset(static_cast<void*>(kept), 0x5a, size);
    for (Block* block : blocks)
      if (block != kept) hand_back(slab, block);
    EXPECT_EQ(punch(slab), pages_without(slab, {kept}) * kPage);
    EXPECT_EQ(punch(slab), 0u) << "nothing is left to return";
    expect_conserved(slab);
    EXPECT_EQ(outstanding(slab), 1u);
    std::vector<Block*> again = take_all(slab);
    EXPECT_FALSE(has_holes(slab));
    again.push_back(kept);
    std::sort(again.begin(), again.end());
    EXPECT_EQ(again, blocks);
    const unsigned char* bytes = reinterpret_cast<const unsigned char*>(kept);
    EXPECT_TRUE(std::all_of(bytes, bytes + size, [](unsigned char byte) { return byte == 0x5a; }));
  }
}

TEST_F(Holes, KeepThePagesOfWhatIsInUse) {
  for (size_t index = 0; index < size_class::kCount; ++index) expect_pages_of_one_kept(index);
}

TEST_F(Holes, WhatIsNotCarvedIsNoHole) {
  Span* slab = make(index_of(1024));
  Block* first = take(slab).blocks;  // two pages of sixteen blocks
  for (Block *block = first, *next; block != nullptr; block = next) {
    next = block->next;
    hand_back(slab, block);
  }
  EXPECT_EQ(punch(slab), 2 * kPage);
  EXPECT_EQ(hollow_blocks(slab), 8u);
  EXPECT_EQ(take_all(slab).size(), 16u);
}

// The owner may be about to link another block to the one it freed last.
TEST_F(Holes, TheNewestOfTheOwnersStays) {
  if (!kPlainWords) GTEST_SKIP() << "here what the owner freed stays";
  Span* slab = make(index_of(64));
  std::vector<Block*> blocks = take_all(slab);
  arm(slab, kNever);
  for (Block* block : blocks) free_local(slab, block);
  Block* newest = slab->free;
  EXPECT_EQ(punch(slab), 3 * kPage);
  EXPECT_EQ(slab->free, newest);
  expect_conserved(slab);
  // As if it had been about to.
  EXPECT_EQ(length(take(slab).blocks), 64u);
  expect_conserved(slab);
}

TEST_F(Holes, WhatTheOwnerSharesGoesWhole) {
  Span* slab = make(index_of(64));
  std::vector<Block*> blocks = take_all(slab);
  hand_back(slab, blocks[0]);
  arm(slab, kNever);
  for (size_t index = 1; index < blocks.size(); ++index) free_local(slab, blocks[index]);
  share(slab);
  EXPECT_EQ(slab->free, nullptr);
  expect_conserved(slab);
  EXPECT_EQ(punch(slab), 4 * kPage);
  EXPECT_EQ(outstanding(slab), 0u);
}

// A block that is in two lists, or in none: the pages stay, and whoever takes the list finds out.
TEST_F(Holes, BrokenListsAreLeftAlone) {
  Span* slab = make(index_of(256));
  std::vector<Block*> blocks = take_all(slab);
  for (Block* block : blocks) hand_back(slab, block);
  set_returned(slab, blocks[3]);
  blocks[3]->next = blocks[3];
  EXPECT_EQ(punch(slab), 0u);
  blocks[3]->next = reinterpret_cast<Block*>(reinterpret_cast<char*>(blocks[5]) + 16);
  EXPECT_EQ(punch(slab), 0u);
  EXPECT_FALSE(has_holes(slab));
}

TEST_F(Holes, PagesThatTheSystemRefusesAreUsedAgain) {
  Span* slab = make(index_of(48));
  std::vector<Block*> blocks = take_all(slab);
  fake::lock_pages(g_realm.address(slab) + kPage, kPage);
  for (size_t index = 1; index < blocks.size(); ++index) hand_back(slab, blocks[index]);
  EXPECT_EQ(punch(slab), 0u) << "one range, refused because of one page";
  expect_conserved(slab);
  EXPECT_EQ(take_all(slab).size(), blocks.size() - 1);
}

TEST_F(HolesDeathTest, AWriteToAHollowBlockIsFound) {
  Span* slab = make(index_of(512));
  std::vector<Block*> blocks = take_all(slab);
  for (size_t index = 1; index < blocks.size(); ++index) hand_back(slab, blocks[index]);
  ASSERT_EQ(punch(slab), 3 * kPage);
  blocks[20]->next = blocks[0];
  while (length(take(slab).blocks) == 7) continue;  // what lay beside the one in use
  EXPECT_DEATH(take_all(slab), "write to a block, or second free of it, when it was free");
}

class Random : public testing::TestWithParam<uint32_t> {};

// Any order of taking, freeing and punching, with pages that are refused now and then.
TEST_P(Random, NothingIsLostAndNothingChanged) {
  std::mt19937 random(GetParam());
  for (size_t index = 0; index < size_class::kCount; ++index) {
    Span* slab = make(index);
    size_t size = properties(slab).size;
    std::map<Block*, unsigned char> live;
    auto drop = [&] {
      auto found =
          live.lower_bound(reinterpret_cast<Block*>(g_realm.address(slab) + random() % Units{slab->units}.bytes()));
      if (found == live.end()) found = live.begin();
      unsigned char* bytes = reinterpret_cast<unsigned char*>(found->first);
      for (size_t at = 0; at < size; ++at) EXPECT_EQ(bytes[at], found->second);
      Block* block = found->first;
      live.erase(found);
      return block;
    };
    for (int step = 0; step < 300; ++step) {
      switch (random() % 8) {
      case 0:
        for (Block *block = take(slab).blocks, *next; block != nullptr; block = next) {
          next = block->next;
          unsigned char content = static_cast<unsigned char>(random());
          ASSERT_TRUE(live.emplace(block, content).second) << "handed out twice";
          std::memset(static_cast<void*>(block), content, size);
        }
        break;
      case 1:
        for (unsigned count = random() % properties(slab).capacity; count != 0 && !live.empty(); --count)
          hand_back(slab, drop());
        break;
      case 2:
        fake::fail_nth(fake::Call::purge, random() % 4);
        punch(slab);
        fake::fail_nth(fake::Call::purge, 0);
        break;
      case 3: share(slab); break;
      case 4: arm(slab, random() % 3 == 0 ? kNever : 1 + random() % 50); break;
      default:
        if (!live.empty()) free_local(slab, drop());
      }
      ASSERT_EQ(outstanding(slab), live.size());
      ASSERT_NO_FATAL_FAILURE(expect_conserved(slab));
    }
    finish(slab);
    g_arena.free(slab);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Random, testing::Range(1u, 6u));

}  // namespace
}  // namespace rh::slab
