// Limits of what the heap holds.
#include "heap/limit.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/bits.h"
#include "heap/idle.h"
#include "heap/relief.h"
#include "support/heaps.h"

namespace rh {
namespace {

// Where committed memory counts a purge gives the charge back.
class Limit : public testing::Test {
 protected:
  void SetUp() override { fake::set_purge_uncommits(platform::kChargesUntouched); }
};

size_t held() { return g_arena.standing().held; }

limit::Bound bytes(uint64_t size) { return {limit::Bound::Kind::bytes, size}; }

void set_limits(size_t soft, size_t hard) {
  limit::Rule rule;
  if (soft != 0) rule.soft = bytes(soft);
  if (hard != 0) rule.hard = bytes(hard);
  limit::set(rule);
  relief::answer();
}

// Until one is refused; most of them end up in `blocks`.
void exhaust(std::vector<void*>& blocks, size_t size, size_t hard) {
  blocks.reserve(blocks.size() + 2 * hard / size);
  while (void* block = allocate(size)) {
    blocks.push_back(block);
    if (held() > hard) FAIL() << held() << " bytes are held";
    if (blocks.size() * size > 2 * hard) FAIL() << "no limit";
  }
}

constexpr size_t kHard = 32 * kMiB;

class Limited : public Limit, public testing::WithParamInterface<size_t> {};

TEST_P(Limited, NothingIsHeldBeyondAndNearlyAllCanBeHad) {
  set_limits(0, kHard);
  std::vector<void*> blocks;
  for (int round = 0; round < 3; ++round) {
    exhaust(blocks, GetParam(), kHard);
    EXPECT_GT(held(), kHard - kMiB - GetParam());
    EXPECT_GT(limit::figures().hard_met, static_cast<size_t>(round));
    free_all(blocks);
    blocks.clear();
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Limited,
                         testing::Values(size_t{48}, size_t{1000}, size_t{20000}, size_t{300000}, kMiB));

// What threads hold back of what they freed is not refused to others.
TEST_F(Limit, WhatOthersKeepCanBeHad) {
  set_limits(0, kHard);
  std::vector<void*> blocks;
  Actor others[4];
  for (Actor& other : others) {
    other([&] {
      std::vector<void*> own;
      for (size_t size : {size_t{64}, size_t{2000}, size_t{40000}})
        for (size_t sum = 0; sum < 2 * kMiB; sum += size) own.push_back(allocate(size));
      free_all(own);
    });
  }
  exhaust(blocks, 500000, kHard);
  EXPECT_GT(blocks.size() * 500000, kHard - 3 * kMiB);
  free_all(blocks);
}

// All that is free lies between what is not: it goes back to the OS, and what is wanted lies elsewhere.
TEST_F(Limit, WhatIsFreeInTheWrongPlaceMakesRoom) {
  std::vector<void*> pairs[2];
  for (size_t count = 0; count < 20; ++count) pairs[count % 2].push_back(allocate(2 * kMiB));
  free_all(pairs[0]);
  set_limits(0, held());
  size_t limit = held();
  EXPECT_NE(allocate(10 * kMiB), nullptr);
  EXPECT_LE(held(), limit);
  EXPECT_GT(held(), limit - 12 * kMiB) << "no more went back than was needed";
}

TEST_F(Limit, LoweredBelowWhatIsHeldAndRaisedAgain) {
  std::vector<void*> blocks = used_blocks(100000, 20 * kMiB);
  size_t before = held();
  set_limits(0, 10 * kMiB);
  EXPECT_LE(held(), before);
  for (size_t size : {size_t{3000000}, size_t{200000}}) EXPECT_EQ(allocate(size), nullptr);
  free_all(blocks);
  EXPECT_NE(allocate(3000000), nullptr) << "room for it again";
  EXPECT_LE(held(), 10 * kMiB);
  EXPECT_EQ(allocate(9 * kMiB), nullptr);
  set_limits(0, 40 * kMiB);
  EXPECT_NE(allocate(9 * kMiB), nullptr);
  set_limits(0, 0);
  EXPECT_NE(allocate(90 * kMiB), nullptr);
}

TEST_F(Limit, BlocksGrowInPlaceNoFurther) {
  if (!k64Bit) GTEST_SKIP() << "pieces of memory need not follow each other";
  set_limits(0, kHard);
  void* block = allocate(20 * kMiB);
  ASSERT_NE(block, nullptr);
  BlockAt at = find_block(block);
  EXPECT_EQ(resize_by_copying(at, kMiB), nullptr) << "a limit may have no room for both";
  EXPECT_EQ(resize_in_place(at, 40 * kMiB, Fit::close), nullptr);
  EXPECT_EQ(resize_in_place(at, 28 * kMiB, Fit::close), block);
  EXPECT_LE(held(), kHard);
  EXPECT_EQ(allocate(4 * kMiB), nullptr);
  EXPECT_EQ(resize_in_place(find_block(block), 20 * kMiB, Fit::close), block);
  EXPECT_NE(allocate(4 * kMiB), nullptr);
}

Actor* g_other = nullptr;
void* g_taken = nullptr;

void take_meanwhile() {
  Actor* other = std::exchange(g_other, nullptr);
  if (other != nullptr) (*other)([] { g_taken = allocate(2 * kMiB); });
}

// While one has the OS make memory usable the other takes what there is already.
TEST_F(Limit, TwoWhoGrowAtOnceDoNotPassIt) {
  if (platform::kChargesUntouched || !k64Bit) GTEST_SKIP() << "the other would have to grow too, and wait";
  free_all(used_blocks(kMiB, 8 * kMiB));
  idle::trim();
  Actor other;
  other([] { deallocate(allocate(100)); });
  set_limits(0, held() + 21 * kMiB);
  g_other = &other;
  fake::on_memory_call(take_meanwhile);
  void* block = allocate(18 * kMiB);
  fake::on_memory_call(nullptr);
  EXPECT_EQ(g_other, nullptr) << "the other had its turn";
  EXPECT_NE(g_taken, nullptr);
  EXPECT_TRUE(block == nullptr || held() <= g_arena.standing().limit.hard);
  EXPECT_LE(held(), g_arena.standing().limit.hard);
}

// A block that moves by its pages has them once.
class LimitOfMoves : public Limit {
 protected:
  static constexpr size_t kSize = 18 * kMiB, kLonger = 22 * kMiB;

  void SetUp() override {
    if (platform::kChargesUntouched) GTEST_SKIP() << "both places are charged";
    Limit::SetUp();
    block_ = allocate(kSize);
    fill(block_, kSize, 5);
    behind_ = allocate(kMiB);
    set_limits(0, kHard);
    before_ = held();
  }

  void* move() {
    void* moved = resize_by_moving(find_block(block_), kLonger);
    EXPECT_LE(held(), kHard);
    return moved;
  }

  void *block_ = nullptr, *behind_ = nullptr;
  size_t before_ = 0;
};

TEST_F(LimitOfMoves, CountsOnce) {
  void* moved = move();
  ASSERT_NE(moved, nullptr);
  EXPECT_TRUE(intact(moved, kSize, 5));
  EXPECT_LE(held(), before_ + kLonger - kSize + 2 * kMiB);
  EXPECT_EQ(allocate(kLonger), nullptr);
  deallocate(moved);
  EXPECT_NE(allocate(kLonger), nullptr);
}

TEST_F(LimitOfMoves, IsWhereItWasWhenTheSystemDoesNotMove) {
  fake::fail_all(fake::Call::move, true);
  EXPECT_EQ(move(), nullptr);
  EXPECT_TRUE(intact(block_, kSize, 5));
  EXPECT_LE(held(), before_ + 2 * kMiB);
  EXPECT_EQ(allocate(kSize), nullptr);
}

TEST_F(LimitOfMoves, NoFurtherThanTheLimit) {
  EXPECT_EQ(resize_by_moving(find_block(block_), 40 * kMiB), nullptr);
  EXPECT_TRUE(intact(block_, kSize, 5));
  EXPECT_EQ(held(), before_);
}

TEST_F(LimitOfMoves, WithoutALimitNothingIsLent) {
  set_limits(0, 0);
  EXPECT_NE(resize_by_moving(find_block(block_), 40 * kMiB), nullptr);
  EXPECT_GE(g_arena.dirty_bytes(), kSize) << "as ever";
}

// What is free elsewhere goes back for it.
TEST_F(Limit, ABlockGrowsInPlaceIntoWhatOthersLeft) {
  if (!k64Bit) GTEST_SKIP() << "pieces of memory need not follow each other";
  void *first = allocate(10 * kMiB), *block = allocate(10 * kMiB);
  deallocate(first);
  set_limits(0, kHard);
  EXPECT_EQ(resize_in_place(find_block(block), 25 * kMiB, Fit::close), block);
  EXPECT_LE(held(), kHard);
}

// What the OS does not take back is still held.
TEST_F(Limit, IsKeptWhereNothingGoesBack) {
  set_limits(0, kHard);
  fake::fail_all(fake::Call::purge, true);
  std::vector<void*> blocks, more;
  exhaust(blocks, 100000, kHard);
  free_all(blocks);
  exhaust(more, 3 * kMiB, kHard);
  EXPECT_GE(more.size(), 1u);
  EXPECT_LE(held(), kHard);
}

TEST_F(Limit, AlignedBlocksCountWhatTheyTake) {
  set_limits(0, kHard);
  std::vector<void*> blocks;
  while (void* block = allocate_aligned(kMiB, 100000)) {
    blocks.push_back(block);
    ASSERT_LE(held(), kHard);
  }
  EXPECT_GE(blocks.size(), 10u);
  free_all(blocks);
}

// ---- the soft limit -----------------------------------------------------------------------------

constexpr size_t kSoft = 16 * kMiB;

TEST_F(Limit, BeyondTheSoftOneWhatIsFreeGoesBackAtOnce) {
  fake::set_clock(1000);
  free_all(used_blocks(100000, 15 * kMiB));
  ASSERT_GT(held(), 14 * kMiB);
  set_limits(kSoft, 0);
  void* block = allocate(14 * kMiB + 500000);
  void* another = allocate(3 * kMiB);
  EXPECT_LE(g_arena.dirty_bytes(), kMiB);
  EXPECT_LT(held(), 20 * kMiB);
  EXPECT_GE(limit::figures().soft_met, 1u);
  deallocate(block);
  deallocate(another);
}

TEST_F(Limit, ASoftOneIsNoReasonToRefuse) {
  set_limits(kSoft, 0);
  std::vector<void*> blocks = used_blocks(5000, 3 * kSoft);
  EXPECT_GT(held(), 3 * kSoft);
  for (void* block : blocks) EXPECT_NE(block, nullptr);
}

TEST_F(Limit, ASoftOneSetBelowWhatIsHeldGivesBackAtOnce) {
  fake::set_clock(1000);
  free_all(used_blocks(100000, 15 * kMiB));
  set_limits(2 * kMiB, 0);
  EXPECT_LT(held(), 2 * kMiB);
}

// A program that lives above the limit, or goes up and down across it, does not give back at each turn.
TEST_F(Limit, WhoLivesBeyondIsLeftAlone) {
  fake::set_clock(1000);
  set_limits(kSoft, 0);
  std::vector<void*> blocks = used_blocks(5000, 20 * kMiB);
  size_t purges = fake::calls(fake::Call::purge), met = limit::figures().soft_met;
  for (int round = 0; round < 1000; ++round) {
    fake::advance(1);
    deallocate(allocate(300000));
    free_all(used_blocks(2000, 100000));
  }
  EXPECT_LE(limit::figures().soft_met, met + 1);
  EXPECT_LE(fake::calls(fake::Call::purge), purges + 100);
}

TEST_F(Limit, AProgramThatCrossesItAllTheTimeGivesBackFiftyTimesASecond) {
  fake::set_clock(1000);
  set_limits(kSoft, 0);
  std::vector<void*> kept = used_blocks(5000, 12 * kMiB);
  for (int round = 0; round < 100; ++round) {
    if (round % 10 == 0) fake::advance(1);
    free_all(used_blocks(100000, 8 * kMiB));
  }
  EXPECT_GE(limit::figures().soft_met, 1u);
  EXPECT_LE(fake::calls(fake::Call::purge), 2000u);
  free_all(kept);
}

// ---- the program is told ------------------------------------------------------------------------

void grow_to(size_t size, std::vector<void*>& blocks) {
  while (held() < size) blocks.push_back(allocate(5000));
}

struct Told {
  size_t times = 0, held = 0, soft = 0;
  bool within = false, again = false;
};
Told g_told;

void note(size_t held, size_t soft) {
  g_told.again |= g_told.within;
  g_told.within = true;
  ++g_told.times;
  g_told.held = held;
  g_told.soft = soft;
  g_told.within = false;
}

TEST_F(Limit, TheProgramIsToldOncePerStep) {
  fake::set_clock(1000);
  EXPECT_EQ(relief::listen(note), nullptr);
  set_limits(kSoft, 0);
  std::vector<void*> blocks, more, much;
  grow_to(kSoft - 100000, blocks);
  EXPECT_EQ(g_told.times, 0u);
  grow_to(kSoft + kMiB / 2, more);
  EXPECT_EQ(g_told.times, 1u);
  EXPECT_GT(g_told.held, kSoft);
  EXPECT_LT(g_told.held, kSoft + kMiB);
  EXPECT_EQ(g_told.soft, kSoft);
  grow_to(kSoft + 8 * kMiB, much);
  EXPECT_GE(g_told.times, 5u);
  EXPECT_LE(g_told.times, 9u);
  // Back below, and up again.
  free_all(much);
  free_all(more);
  free_all(blocks);
  idle::trim();
  blocks.clear();
  size_t times = g_told.times;
  grow_to(kSoft - 100000, blocks);
  EXPECT_EQ(g_told.times, times);
  grow_to(kSoft + kMiB / 2, blocks);
  EXPECT_EQ(g_told.times, times + 1);
  EXPECT_EQ(relief::listen(nullptr), note);
}

std::vector<void*> g_cache;

// Allocates much, and frees what can be done without.
void drop_cache(size_t held, size_t soft) {
  if (g_told.within) {
    g_told.again = true;
    return;
  }
  g_told.within = true;
  ++g_told.times;
  std::vector<void*> own = used_blocks(3000, 4 * kMiB);
  free_all(own);
  free_all(g_cache);
  g_cache.clear();
  idle::trim();
  EXPECT_GT(held, soft);
  g_told.within = false;
}

TEST_F(Limit, WhoIsToldMayAllocateAndIsNotCalledMeanwhile) {
  fake::set_clock(1000);
  g_cache = used_blocks(5000, 10 * kMiB);
  relief::listen(drop_cache);
  set_limits(kSoft, kHard);
  std::vector<void*> blocks = used_blocks(5000, 14 * kMiB);
  EXPECT_EQ(g_told.times, 1u);
  EXPECT_FALSE(g_told.again);
  EXPECT_TRUE(g_cache.empty());
  EXPECT_LE(held(), kSoft);
}

// ---- what the OS says ---------------------------------------------------------------------------

void make_group(uint64_t limit, uint64_t current) {
  fake::set_file("/proc/self/cgroup", "0::/app\n");
  fake::set_file("/proc/self/mountinfo", "30 22 0:26 / /groups rw - cgroup2 cgroup rw\n");
  fake::set_file("/groups/app/memory.max", limit != 0 ? std::to_string(limit).c_str() : "max");
  fake::set_file("/groups/app/memory.current", std::to_string(current).c_str());
}

// The group holds what the heap does, and so much more.
void take_beside_others(uint64_t limit, uint64_t others, std::vector<void*>& blocks) {
  for (;;) {
    make_group(limit, held() + others);
    void* block = allocate(100000);
    if (block == nullptr) return;
    blocks.push_back(block);
    ASSERT_LE(held() + others, limit);
  }
}

void set_automatic() {
  limit::Rule rule;
  rule.automatic = true;
  limit::set(rule);
  relief::answer();
}

TEST_F(Limit, AutomaticKeepsWithinTheGroup) {
  make_group(64 * kMiB, 0);
  set_automatic();
  std::vector<void*> blocks;
  exhaust(blocks, 100000, 64 * kMiB);
  EXPECT_GT(held(), 55 * kMiB);
  EXPECT_LE(held(), 60 * kMiB) << "a sixteenth is left to others";
  EXPECT_GE(limit::figures().soft_met, 1u);
}

TEST_F(Limit, AutomaticWithoutALimitIsNone) {
  make_group(0, 0);
  set_automatic();
  EXPECT_NE(allocate(300 * kMiB), nullptr);
  EXPECT_EQ(g_arena.standing().limit, Arena::Limit{});
}

TEST_F(Limit, AutomaticFollowsWhatOthersTake) {
  fake::set_clock(10000);
  make_group(64 * kMiB, 0);
  set_automatic();
  std::vector<void*> blocks = used_blocks(100000, 10 * kMiB);
  take_beside_others(64 * kMiB, 30 * kMiB, blocks);
  EXPECT_LE(held(), 31 * kMiB);
  EXPECT_GE(held(), 28 * kMiB);
  // They are gone, and it is asked again when memory is refused.
  fake::advance(100);
  take_beside_others(64 * kMiB, 0, blocks);
  EXPECT_GE(held(), 58 * kMiB);
}

TEST_F(Limit, AutomaticFollowsALimitThatIsSetLater) {
  fake::set_clock(10000);
  make_group(0, 0);
  set_automatic();
  std::vector<void*> blocks = used_blocks(100000, 10 * kMiB);
  make_group(64 * kMiB, held());
  std::vector<void*> more;
  exhaust(more, 100000, 128 * kMiB);
  EXPECT_LE(held(), 80 * kMiB);
}

TEST_F(Limit, WhatCannotBeReadIsAsItWas) {
  fake::set_clock(10000);
  make_group(64 * kMiB, 0);
  set_automatic();
  Arena::Limit before = g_arena.standing().limit;
  fake::fail_all(fake::Call::open, true);
  std::vector<void*> blocks;
  exhaust(blocks, 100000, 64 * kMiB);
  EXPECT_EQ(g_arena.standing().limit, before);
}

TEST_F(Limit, TheHelperFollowsToo) {
  fake::set_clock(10000);
  idle::set_decay_ms(60000);
  make_group(64 * kMiB, 0);
  set_automatic();
  std::vector<void*> blocks = used_blocks(100000, 20 * kMiB);
  free_all(used_blocks(100000, 10 * kMiB));
  ASSERT_TRUE(fake::helper_is_there());
  make_group(20 * kMiB, held());
  fake::step_helper();
  EXPECT_LE(g_arena.standing().limit.hard, 20 * kMiB);
  EXPECT_LE(g_arena.dirty_bytes(), kMiB) << "beyond the soft limit nothing free is kept";
}

TEST_F(Limit, UnderPressureTheHelperGivesBackAtOnce) {
  idle::set_decay_ms(60000);
  make_group(0, 0);
  set_automatic();
  free_all(used_blocks(100000, 20 * kMiB));
  ASSERT_TRUE(fake::helper_is_there());
  fake::step_helper();
  EXPECT_GT(g_arena.dirty_bytes(), 10 * kMiB);
  fake::set_pressure(true);
  fake::step_helper();
  EXPECT_LE(g_arena.dirty_bytes(), kMiB);
}

// Limits, rules and the group change under threads that allocate.
TEST_F(Limit, ThreadsAllocateWhileLimitsChange) {
  constexpr size_t kMost = 24 * kMiB;
  make_group(kMost, 0);
  set_limits(kMost / 2, kMost);
  relief::listen([](size_t, size_t) { deallocate(allocate(100000)); });
  std::atomic<bool> over{false};
  std::atomic<size_t> done{0};
  std::vector<std::thread> threads;
  for (size_t number = 0; number < 4; ++number)
    threads.emplace_back([&over, &done, number] {
      std::vector<void*> blocks(64);
      for (size_t at = number; !over; ++at) {
        void*& block = blocks[at % blocks.size()];
        deallocate(block);
        block = allocate(at % 3 == 0 ? 600000 : at % 5000);
        done.fetch_add(1);
      }
      free_all(blocks);
    });
  for (int round = 0; round < 40; ++round) {
    if (round % 3 == 0) set_automatic();
    if (round % 3 == 1) set_limits(kMost / 3, kMost);
    make_group(kMost + static_cast<size_t>(round) % 4 * kMiB, held());
    EXPECT_LE(held(), kMost + 4 * kMiB);
    fake::advance(30);
    fake::step_helper();
    for (size_t before = done; done < before + 100;) std::this_thread::yield();
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  relief::listen(nullptr);
}

TEST_F(Limit, PerCentAreOfTheLeast) {
  fake::set_machine_memory(1024 * kMiB);
  limit::Rule rule;
  rule.soft = {limit::Bound::Kind::percent, 50};
  rule.hard = {limit::Bound::Kind::percent, 75};
  limit::set(rule);
  relief::answer();
  Arena::Limit of_machine = g_arena.standing().limit;
  EXPECT_NEAR(static_cast<double>(of_machine.hard), 768.0 * kMiB, 100) << "where there are no groups";
  make_group(0, 0);
  limit::set(rule);
  relief::answer();
  EXPECT_NEAR(static_cast<double>(g_arena.standing().limit.hard), 768.0 * kMiB, 100);
  make_group(64 * kMiB, 0);
  limit::set(rule);
  relief::answer();
  EXPECT_NEAR(static_cast<double>(g_arena.standing().limit.hard), 48.0 * kMiB, 100);
  EXPECT_NEAR(static_cast<double>(g_arena.standing().limit.soft), 32.0 * kMiB, 100);
}

}  // namespace
}  // namespace rh
