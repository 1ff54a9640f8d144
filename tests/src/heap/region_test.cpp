// Heaps over a range of addresses: the caller's memory, and near code.
#include "heap/regions.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "support/heaps.h"
#include "support/region_player.h"

namespace rh {
namespace {

using Seen = Region::Seen;
using regions::Failure;

Region* near_space(size_t size) {
  const regions::Made made = regions::make_near(reinterpret_cast<void*>(fake::space_start()), size);
  EXPECT_EQ(made.failure, Failure::none);
  return made.region;
}

Region* over(std::vector<unsigned char>& memory) {
  const regions::Made made = regions::make_in(memory.data(), memory.size());
  EXPECT_EQ(made.failure, Failure::none);
  return made.region;
}

// A header of the block's lies so far before it.
unsigned char* header_of(void* block) { return static_cast<unsigned char*>(block) - kBlockAlign; }

// ---- blocks -------------------------------------------------------------------------------------

TEST(Region, IsUsedUpAndIsOnePieceAgain) {
  std::vector<unsigned char> memory(64 * 1024);
  Region* region = over(memory);
  const size_t longest = longest_in(*region);
  EXPECT_GE(longest, 61 * 1024u);
  std::vector<void*> blocks;
  while (void* block = region->allocate(kBlockAlign, 100)) {
    fill(block, 100, static_cast<unsigned>(blocks.size()));
    blocks.push_back(block);
  }
  EXPECT_EQ(blocks.size(), (longest + 16) / (112 + 16));
  EXPECT_EQ(region->figures().blocks, blocks.size());
  for (size_t index = 0; index < blocks.size(); ++index)
    EXPECT_TRUE(intact(blocks[index], 100, static_cast<unsigned>(index)));
  for (size_t start : {1u, 0u})
    for (size_t index = start; index < blocks.size(); index += 2)
      EXPECT_EQ(region->free(blocks[index]).seen, Seen::block);
  EXPECT_TRUE(region->is_valid());
  EXPECT_EQ(longest_in(*region), longest);
  EXPECT_EQ(region->account().held(), 0u);
  regions::destroy(region);
}

TEST(Region, AlignsToAnyPowerOfTwo) {
  Region* region = near_space(8 * kMiB);
  for (size_t alignment = 1; alignment <= 2 * kMiB; alignment *= 2) {
    void* block = region->allocate(alignment, 100);
    ASSERT_NE(block, nullptr) << alignment;
    EXPECT_EQ(address_of(block) % alignment, 0u);
    EXPECT_TRUE(region->is_valid());
  }
  EXPECT_EQ(region->allocate(size_t{1} << 30, 1), nullptr);
  regions::destroy(region);
}

TEST(Region, GrowsInPlace) {
  std::vector<unsigned char> memory(32 * 1024);
  Region* region = over(memory);
  void* block = region->allocate(kBlockAlign, 100);
  void* next = region->allocate(kBlockAlign, 1000);
  fill(block, 100, 1);
  EXPECT_FALSE(region->resize(block, 500));
  region->free(next);
  EXPECT_TRUE(region->resize(block, 500));
  EXPECT_TRUE(intact(block, 100, 1));
  EXPECT_EQ(region->look(block).asked, 500u);
  EXPECT_FALSE(region->resize(block, 40 * 1024));
  EXPECT_FALSE(region->resize(block, SIZE_MAX));
  EXPECT_TRUE(region->resize(block, 0));
  EXPECT_TRUE(region->is_valid());
  regions::destroy(region);
}

TEST(Region, LimitRefuses) {
  std::vector<unsigned char> memory(32 * 1024);
  Region* region = over(memory);
  region->account().set_limit(1024);
  void* block = region->allocate(kBlockAlign, 496);
  EXPECT_NE(block, nullptr);
  EXPECT_EQ(region->allocate(kBlockAlign, 600), nullptr);
  EXPECT_EQ(region->account().refused(), 1u);
  EXPECT_FALSE(region->resize(block, 1100));
  EXPECT_TRUE(region->resize(block, 900));
  EXPECT_EQ(region->account().held(), 928u);
  regions::destroy(region);
}

TEST(Region, ResetFreesAll) {
  for (Region* region : {near_space(kMiB), near_space(kMiB)}) {
    const size_t longest = longest_in(*region);
    void* block = nullptr;
    for (int count = 0; count < 100; ++count) block = region->allocate(kBlockAlign, 5000);
    region->reset();
    EXPECT_EQ(region->free(block).seen, Seen::nothing);
    EXPECT_TRUE(region->is_valid());
    EXPECT_EQ(region->figures().blocks, 0u);
    EXPECT_EQ(longest_in(*region), longest);
    regions::destroy(region);
  }
}

// ---- misuse -------------------------------------------------------------------------------------

TEST(Region, KnowsWhatIsNoLiveBlock) {
  std::vector<unsigned char> memory(32 * 1024);
  Region* region = over(memory);
  auto* block = static_cast<unsigned char*>(region->allocate(kBlockAlign, 1000));
  auto* next = static_cast<unsigned char*>(region->allocate(kBlockAlign, 1000));
  for (unsigned char* pointer : {block + 1, block + 16, block + 512, memory.data(), memory.data() + memory.size() - 1})
    EXPECT_EQ(region->free(pointer).seen, Seen::nothing);
  EXPECT_EQ(region->free(next).seen, Seen::block);
  EXPECT_EQ(region->free(next).seen, Seen::free);
  EXPECT_EQ(region->free(block).seen, Seen::block);
  EXPECT_EQ(region->free(block).seen, Seen::free);
  EXPECT_EQ(region->free(next).seen, Seen::free);
  EXPECT_TRUE(region->is_valid());
  regions::destroy(region);
}

TEST(Region, SeesAnOverrunIntoTheNextHeader) {
  std::vector<unsigned char> memory(32 * 1024);
  Region* region = over(memory);
  void* block = region->allocate(kBlockAlign, 1000);
  void* next = region->allocate(kBlockAlign, 1000);
  for (size_t at = 0; at < kBlockAlign; ++at) {
    unsigned char& byte = header_of(next)[at];
    byte ^= 0x40;
    EXPECT_EQ(region->free(block).seen, Seen::overrun) << at;
    EXPECT_EQ(region->free(next).seen, Seen::nothing) << at;
    byte ^= 0x40;
  }
  EXPECT_EQ(region->free(next).seen, Seen::block);
  EXPECT_EQ(region->free(block).seen, Seen::block);
  regions::destroy(region);
}

TEST(Region, HandsOutNothingAfterFreeMemoryWasWrittenTo) {
  std::vector<unsigned char> memory(32 * 1024);
  Region* region = over(memory);
  void* block = region->allocate(kBlockAlign, 1000);
  region->allocate(kBlockAlign, 100);
  region->free(block);
  fill(block, 16, 1);  // where the list goes on
  EXPECT_EQ(region->allocate(kBlockAlign, 1000), nullptr);
  EXPECT_EQ(region->take_damage(), address_of(block));
  EXPECT_EQ(region->take_damage(), 0u);
  EXPECT_EQ(region->allocate(kBlockAlign, 10), nullptr);
  region->reset();
  EXPECT_NE(region->allocate(kBlockAlign, 1000), nullptr);
  regions::destroy(region);
}

// Not even where the list leads to a piece that is free.
TEST(Region, FollowsNoLinkThatIsNotAnswered) {
  alignas(16) static unsigned char memory[32 * 1024];
  Region* region = regions::make_in(memory, sizeof(memory)).region;
  void* blocks[6];
  for (void*& block : blocks) block = region->allocate(kBlockAlign, 1000);
  for (int index : {0, 2, 4}) region->free(blocks[index]);
  const auto other = static_cast<uint32_t>((address_of(header_of(blocks[0])) - address_of(region)) / kBlockAlign);
  std::memcpy(blocks[4], &other, sizeof(other));  // past blocks[2]
  EXPECT_EQ(region->allocate(kBlockAlign, 1000), nullptr);
  EXPECT_EQ(region->take_damage(), address_of(blocks[4]));
  regions::destroy(region);
}

// A walk that stopped before a block which is part of another one now.
TEST(Region, AWalkGoesOnWhenItsPlaceIsGone) {
  std::vector<unsigned char> memory(64 * 1024);
  Region* region = over(memory);
  std::vector<void*> blocks;
  for (int count = 0; count < 100; ++count) blocks.push_back(region->allocate(kBlockAlign, 100));
  Region::Walk walk;
  region->walk_on(&walk);
  ASSERT_EQ(walk.count, 64u);
  for (size_t index : {63u, 64u, 65u}) region->free(blocks[index]);
  void* longer = region->allocate(kBlockAlign, 300);
  EXPECT_EQ(longer, blocks[63]);
  fill(longer, 300, 1);
  region->walk_on(&walk);
  EXPECT_EQ(walk.count, 34u);
  EXPECT_EQ(walk.found[0].block, blocks[66]);
  EXPECT_EQ(region->take_damage(), 0u);
  regions::destroy(region);
}

TEST(Region, IsMadeAnewFromItsPieces) {
  Region* region = near_space(kMiB);
  std::vector<void*> blocks;
  for (size_t count = 0; count < 50; ++count) {
    blocks.push_back(region->allocate(kBlockAlign, 100 + 50 * count));
    fill(blocks.back(), 100 + 50 * count, static_cast<unsigned>(count));
  }
  for (size_t index = 0; index < 50; index += 3) region->free(blocks[index]);
  const Region::Figures before = region->figures();
  const size_t held = region->account().held();
  region->recover();
  EXPECT_TRUE(region->is_valid());
  EXPECT_EQ(region->figures().in_use, before.in_use);
  EXPECT_EQ(region->figures().blocks, before.blocks);
  EXPECT_EQ(region->account().held(), held);
  for (size_t index = 1; index < 50; index += 3)
    EXPECT_TRUE(intact(blocks[index], 100 + 50 * index, static_cast<unsigned>(index)));
  header_of(blocks[1])[0] ^= 1;
  region->recover();
  EXPECT_EQ(region->free(blocks[2]).seen, Seen::lost);
  EXPECT_EQ(region->allocate(kBlockAlign, 1), nullptr);
  regions::destroy(region);
}

// ---- near code ----------------------------------------------------------------------------------

TEST(Region, CommitsAsNeededAndTrims) {
  const size_t reserved = fake::reserved_bytes(), committed = fake::committed_bytes();
  Region* region = near_space(64 * kMiB);
  EXPECT_EQ(fake::reserved_bytes() - reserved, 64 * kMiB);
  EXPECT_LE(fake::committed_bytes() - committed, 8192u);
  std::vector<void*> blocks;
  for (int count = 0; count < 64; ++count) blocks.push_back(region->allocate(kBlockAlign, kMiB / 4));
  EXPECT_GE(fake::committed_bytes() - committed, 16 * kMiB);
  EXPECT_EQ(region->figures().committed, fake::committed_bytes() - committed);
  EXPECT_EQ(g_arena.held_near(), region->figures().committed);
  for (int count = 0; count < 60; ++count) region->free(blocks[static_cast<size_t>(count)]);
  const size_t before = region->figures().committed, back = region->trim();
  EXPECT_EQ(before - back, region->figures().committed);
  if (!platform::kChargesUntouched) EXPECT_GE(back, 14 * kMiB);
  for (int count = 0; count < 60; ++count)
    fill(blocks[static_cast<size_t>(count)] = region->allocate(kBlockAlign, kMiB / 4), kMiB / 4, 1);
  for (void* block : blocks) region->free(block);
  EXPECT_GE(region->trim(), 15 * kMiB);
  EXPECT_LE(region->figures().committed, 2 * platform::kPageSize);
  EXPECT_TRUE(region->is_valid());
  regions::destroy(region);
  EXPECT_EQ(fake::reserved_bytes(), reserved);
  EXPECT_EQ(g_arena.held_near(), 0u);
}

TEST(Region, StandsWhenTheSystemRefuses) {
  Region* region = near_space(16 * kMiB);
  void* block = region->allocate(kBlockAlign, 100);
  fake::fail_all(fake::Call::commit, true);
  EXPECT_EQ(region->allocate(kBlockAlign, kMiB), nullptr);
  EXPECT_FALSE(region->resize(block, kMiB));
  fake::fail_all(fake::Call::commit, false);
  EXPECT_TRUE(region->is_valid());
  EXPECT_TRUE(region->resize(block, kMiB));
  region->free(block);
  fake::fail_all(fake::Call::purge, true);
  EXPECT_EQ(region->trim(), 0u);
  fake::fail_all(fake::Call::purge, false);
  EXPECT_TRUE(region->is_valid());
  EXPECT_GE(region->trim(), kMiB / 2);
  regions::destroy(region);
}

TEST(Region, CountsWithALimitOfTheLibrarys) {
  allocate(1);
  Region* region = near_space(16 * kMiB);
  g_arena.set_limit({Arena::kUnlimited, g_arena.standing().held + kMiB});
  EXPECT_EQ(region->allocate(kBlockAlign, 2 * kMiB), nullptr);
  EXPECT_NE(region->allocate(kBlockAlign, kMiB / 2), nullptr);
  regions::destroy(region);
}

TEST(Region, LiesWithinReach) {
  const uintptr_t code = fake::space_start() + 3 * kMiB;
  fake::occupy(align_down(code, 16 * kMiB), 32 * kMiB);
  Region* region = near_space(64 * kMiB);
  if constexpr (k64Bit) {
    EXPECT_LT(region->base() + region->size() - fake::space_start(), size_t{1} << 31);
    EXPECT_GE(region->base(), fake::space_start());
  }
  regions::destroy(region);
}

TEST(Region, LiesNoFurtherThanThat) {
  if constexpr (!k64Bit) GTEST_SKIP() << "everything is within reach";
  constexpr size_t kFarthest = size_t{1} << 31;
  const uintptr_t code = align_up(fake::space_start(), 16 * kMiB) + kFarthest + 512 * kMiB, lowest = code - kFarthest;
  fake::occupy(lowest - 64 * kMiB, 64 * kMiB);
  fake::occupy(lowest + 16 * kMiB, 2 * kFarthest + 64 * kMiB);
  const void* place = reinterpret_cast<void*>(code);
  const regions::Made made = regions::make_near(place, 16 * kMiB);
  ASSERT_NE(made.region, nullptr);
  EXPECT_EQ(made.region->base(), lowest);
  EXPECT_EQ(regions::make_near(place, 16 * kMiB).failure, Failure::memory);
  regions::destroy(made.region);
}

TEST(Region, NearNothingThatIsFree) {
  if constexpr (!k64Bit) GTEST_SKIP() << "everything is within reach";
  // Where the fake system has no space at all.
  const regions::Made made = regions::make_near(reinterpret_cast<void*>(fake::space_start() / 2), kMiB);
  EXPECT_EQ(made.region, nullptr);
  EXPECT_EQ(made.failure, Failure::memory);
}

// ---- all of them --------------------------------------------------------------------------------

TEST(Region, RefusesWhatIsNoMemoryForIt) {
  std::vector<unsigned char> memory(32 * 1024);
  auto failure = [](void* at, size_t size) { return regions::make_in(at, size).failure; };
  EXPECT_EQ(failure(nullptr, 4096), Failure::invalid);
  EXPECT_EQ(failure(memory.data(), 0), Failure::invalid);
  EXPECT_EQ(failure(memory.data(), 100), Failure::invalid);
  EXPECT_EQ(failure(memory.data(), SIZE_MAX), Failure::invalid);
  EXPECT_EQ(failure(reinterpret_cast<void*>(UINTPTR_MAX - 4095), 4096), Failure::invalid);
  void* ours = allocate(kMiB);
  EXPECT_EQ(failure(ours, kMiB), Failure::invalid);
  EXPECT_EQ(failure(reinterpret_cast<void*>(g_realm.first_address() - 4096), 8192), Failure::invalid);
  for (const void* code : {static_cast<const void*>(nullptr), static_cast<const void*>(memory.data())}) {
    EXPECT_EQ(regions::make_near(code, 0).failure, Failure::invalid);
    EXPECT_EQ(regions::make_near(code, SIZE_MAX).failure, Failure::invalid);
  }
  Region* region = over(memory);
  for (size_t offset : {0u, 100u, 20000u}) EXPECT_EQ(failure(memory.data() + offset, 10000), Failure::invalid);
  regions::destroy(region);
  EXPECT_EQ(failure(memory.data() + 1, 10000), Failure::none);
}

// The least that is taken is enough for a block, whatever the memory's length and where it begins.
TEST(Region, TheLeastHoldsABlock) {
  std::vector<unsigned char> memory(8192);
  for (size_t offset = 0; offset < 16; ++offset) {
    size_t size = 16;
    regions::Made made = regions::make_in(memory.data() + offset, size);
    for (; made.region == nullptr; made = regions::make_in(memory.data() + offset, ++size)) ASSERT_LT(size, 2048u);
    void* block = made.region->allocate(kBlockAlign, kHardened ? 8 : 16);
    EXPECT_NE(block, nullptr) << size;
    EXPECT_LE(address_of(block) + 16, address_of(memory.data()) + offset + size);
    EXPECT_EQ(made.region->allocate(kBlockAlign, 1), nullptr);
    EXPECT_TRUE(made.region->is_valid());
    regions::destroy(made.region);
  }
}

TEST(Region, LieBesideEachOtherInEitherOrder) {
  std::vector<unsigned char> memory(3 * 4096);
  Region* regions[3] = {};
  for (size_t index : {1u, 0u, 2u}) {
    regions[index] = regions::make_in(memory.data() + index * 4096, 4096).region;
    ASSERT_NE(regions[index], nullptr) << index;
  }
  for (size_t at = 0; at < memory.size(); at += 4096) {
    EXPECT_EQ(regions::find(memory.data() + at), regions[at / 4096]);
    EXPECT_EQ(regions::find(memory.data() + at + 4095), regions[at / 4096]);
  }
  for (Region* region : regions) regions::destroy(region);
}

TEST(Region, AreFoundAndForgotten) {
  std::vector<unsigned char> memory(64 * 4096);
  std::vector<Region*> all;
  for (size_t index = 0; index < 64; ++index)
    all.push_back(regions::make_in(memory.data() + index * 4096, 4000).region);
  for (size_t index = 0; index < 64; ++index) {
    EXPECT_EQ(regions::find(memory.data() + index * 4096), all[index]);
    EXPECT_EQ(regions::find(memory.data() + index * 4096 + 3999), all[index]);
    EXPECT_EQ(regions::find(memory.data() + index * 4096 + 4000), nullptr);
    EXPECT_EQ(regions::of_handle(all[index]->handle), all[index]);
  }
  const uintptr_t gone = all[5]->handle;
  regions::destroy(all[5]);
  EXPECT_EQ(regions::find(memory.data() + 5 * 4096), nullptr);
  EXPECT_EQ(regions::of_handle(gone), nullptr);
  all[5] = regions::make_in(memory.data() + 5 * 4096, 4000).region;
  EXPECT_NE(all[5]->handle, gone);
  EXPECT_EQ(regions::of_handle(gone), nullptr);
  EXPECT_EQ(regions::of_handle(0), nullptr);
  EXPECT_EQ(regions::figures().count, 64u);
  for (Region* region : all) regions::destroy(region);
  EXPECT_EQ(regions::figures().count, 0u);
}

TEST(Region, ThereAreOnlySoMany) {
  std::vector<unsigned char> memory((regions::kMost + 1) * 2048);
  std::vector<Region*> all;
  for (size_t index = 0; index < regions::kMost; ++index)
    all.push_back(regions::make_in(memory.data() + index * 2048, 2048).region);
  EXPECT_NE(all.back(), nullptr);
  EXPECT_EQ(regions::make_in(memory.data() + regions::kMost * 2048, 2048).failure, Failure::memory);
  for (Region* region : all) regions::destroy(region);
}

// What one thread uses is found while others make and destroy theirs, in the same places; what is in none is not.
TEST(Region, AreFoundWhileOthersComeAndGo) {
  constexpr size_t kSize = 4096;
  std::vector<unsigned char> memory(8 * kSize);
  std::atomic<bool> done{false};
  Region* mine = regions::make_in(memory.data(), kSize).region;
  std::vector<std::thread> threads;
  for (size_t number = 0; number < 2; ++number)
    threads.emplace_back([&, number] {
      while (!done.load()) {
        // Each in the place that the other had.
        for (size_t at : {1 + 3 * number, 3 + 3 * number}) {
          Region* region = regions::make_in(memory.data() + at * kSize, kSize).region;
          void* block = region->allocate(kBlockAlign, 100);
          EXPECT_EQ(regions::find(block), region);
          EXPECT_EQ(region->free(block).seen, Seen::block);
          regions::destroy(region);
        }
      }
    });
  for (int round = 0; round < 20000; ++round) {
    ASSERT_EQ(regions::find(memory.data() + round % kSize), mine);
    // Between two that come and go.
    ASSERT_EQ(regions::find(memory.data() + 2 * kSize + round % kSize), nullptr);
    if (round % 16 == 0) EXPECT_EQ(mine->free(mine->allocate(kBlockAlign, 100)).seen, Seen::block);
    if (round % 64 == 0) regions::figures();
  }
  done.store(true);
  for (std::thread& thread : threads) thread.join();
  regions::destroy(mine);
}

TEST(Region, ThreadsShareOne) {
  Region* region = near_space(4 * kMiB);
  const size_t longest = longest_in(*region);
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < 3; ++number)
    threads.emplace_back([=] {
      std::mt19937 random(number);
      std::vector<void*> blocks;
      for (int round = 0; round < 2000; ++round) {
        void* block = region->allocate(kBlockAlign, random() % 500);
        if (block != nullptr) blocks.push_back(block);
        if (round % 100 == 0) region->trim();
        if (blocks.size() > 20) {
          std::swap(blocks[random() % blocks.size()], blocks.back());
          EXPECT_EQ(region->free(blocks.back()).seen, Seen::block);
          blocks.pop_back();
        }
      }
      for (void* block : blocks) EXPECT_EQ(region->free(block).seen, Seen::block);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(region->is_valid());
  EXPECT_EQ(longest_in(*region), longest);
  regions::destroy(region);
}

// ---- random use against a model -----------------------------------------------------------------

class RegionModel : public testing::TestWithParam<unsigned> {};

TEST_P(RegionModel, AgreesWithTheModel) {
  for (unsigned round = 0; round < 30; ++round) {
    const unsigned seed = GetParam() * 1000 + round;
    std::mt19937 random(seed);
    std::vector<unsigned char> memory(20 * 1024 + random() % 40000);
    Region* region = random() % 2 == 0 ? over(memory) : near_space(128 * 1024);
    std::vector<uint8_t> decisions(4000);
    for (uint8_t& byte : decisions) byte = static_cast<uint8_t>(random());
    SCOPED_TRACE(seed);
    RegionPlayer(*region, Input(decisions.data(), decisions.size())).play();
    regions::destroy(region);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RegionModel, testing::Range(0u, 4u));

}  // namespace
}  // namespace rh
