// What the books of a profile say, of blocks that are only named.
#include "profile/profile.h"

#include <gtest/gtest.h>

#include <csetjmp>
#include <map>
#include <set>
#include <vector>

#include "platform/fake/fake.h"
#include "profile/live.h"

namespace rh::profile {
namespace {

// So large a block stands for itself alone.
constexpr size_t kSure = size_t{1} << 20;
constexpr uint64_t kEvery = 1024;

const void* block(size_t number) { return reinterpret_cast<const void*>(0x100000 + number * 16); }

void at_site(uintptr_t site) {
  const uintptr_t frames[] = {site, 0x99};
  fake::set_stack(frames, 2);
}

class Profile : public testing::Test {
 protected:
  Profile() {
    fake::set_clock(1000);
    start(kEvery);
  }
  ~Profile() override { give_back(shot_); }

  void shoot() {
    give_back(shot_);
    shot_ = {};
    ASSERT_TRUE(take(shot_));
  }

  const Stack* site(uintptr_t innermost) {
    for (size_t i = 0; i != shot_.stacks.all().count(); ++i) {
      const Stack& stack = shot_.stacks.all()[i];
      if (stack.depth == 2 && shot_.stacks.frames()[stack.first_frame] == innermost) return &stack;
    }
    return nullptr;
  }

  uint64_t peak_of(const Stack* stack) const {
    return stack->peak == shot_.peak ? stack->at_peak.bytes : stack->live.bytes;
  }

  Snapshot shot_ = {};
};

TEST_F(Profile, CountsByStack) {
  at_site(0x10);
  note_allocation(block(0), kSure, kEvery);
  note_allocation(block(1), kSure, kEvery);
  at_site(0x20);
  note_allocation(block(2), kSure, kEvery);
  note_free(block(1));
  shoot();
  ASSERT_EQ(shot_.stacks.all().count(), 2u);
  EXPECT_EQ(site(0x10)->allocated.bytes, 2 * kSure);
  EXPECT_EQ(site(0x10)->allocated.objects, 2 * Amount::kObject);
  EXPECT_EQ(site(0x10)->live.bytes, kSure);
  EXPECT_EQ(site(0x20)->live.objects, Amount::kObject);
  EXPECT_EQ(shot_.live.bytes, 2 * kSure);
  EXPECT_EQ(shot_.every, kEvery);
}

bool was_told(const fake::Told& told, const void* block, uint64_t size, uint64_t stands_for) {
  return told.block == address_of(block) && told.size == size && told.stands_for == stands_for;
}

TEST_F(Profile, ToolsOutsideAreToldOfWhatIsInTheBooks) {
  note_free(block(0));
  note_resize(block(0), 1, kEvery);
  begin_move(block(0), block(1));
  end_move(block(1), 1, kEvery);
  cancel_move(block(0), block(1));
  EXPECT_EQ(fake::told().count, 0u);
  note_allocation(block(0), 1, kEvery);
  EXPECT_TRUE(was_told(fake::told(), block(0), 1, 1025));
  note_free(block(0));
  EXPECT_TRUE(was_told(fake::told(), block(0), 0, 0));
  note_free(block(0));
  EXPECT_EQ(fake::told().count, 2u);
}

TEST_F(Profile, ToolsOutsideAreToldOfABlockThatMovesAndGrows) {
  note_allocation(block(0), kSure, kEvery);
  begin_move(block(0), block(1));
  EXPECT_TRUE(was_told(fake::told(), block(0), 0, 0));
  EXPECT_EQ(fake::told().count, 2u);
  end_move(block(1), 2 * kSure, kEvery);
  EXPECT_TRUE(was_told(fake::told(), block(1), 2 * kSure, 2 * kSure));
  begin_move(block(1), block(2));
  EXPECT_TRUE(was_told(fake::told(), block(1), 0, 0));
  cancel_move(block(1), block(2));
  EXPECT_TRUE(was_told(fake::told(), block(1), 2 * kSure, 2 * kSure));
  EXPECT_TRUE(note_resize(block(1), kSure, kEvery));
  EXPECT_TRUE(was_told(fake::told(), block(1), kSure, kSure));
  EXPECT_EQ(fake::told().count, 7u);
}

TEST_F(Profile, OfASmallBlockStandsForMany) {
  at_site(0x10);
  note_allocation(block(0), 1, kEvery);
  shoot();
  EXPECT_NEAR(static_cast<double>(site(0x10)->live.objects) / Amount::kObject, 1024.5, 0.1);
  EXPECT_NEAR(static_cast<double>(site(0x10)->live.bytes), 1024.5, 1);
}

TEST_F(Profile, NothingIsNotDividedBy) {
  at_site(0x10);
  note_allocation(block(0), 0, kEvery);
  shoot();
  EXPECT_EQ(site(0x10)->live.bytes, 0u);
  EXPECT_NEAR(static_cast<double>(site(0x10)->live.objects) / Amount::kObject, 1024.5, 0.1);
}

TEST_F(Profile, KnowsWhatWasLiveAtThePeak) {
  at_site(0x10);
  for (size_t i = 0; i != 3; ++i) note_allocation(block(i), kSure, kEvery);
  at_site(0x20);
  note_allocation(block(3), kSure, kEvery);
  note_free(block(0));  // the peak is over
  note_free(block(1));
  at_site(0x30);
  note_allocation(block(4), kSure, kEvery);
  shoot();
  EXPECT_EQ(shot_.at_peak.bytes, 4 * kSure);
  EXPECT_EQ(peak_of(site(0x10)), 3 * kSure);
  EXPECT_EQ(peak_of(site(0x20)), kSure);
  EXPECT_EQ(peak_of(site(0x30)), 0u);
  note_allocation(block(5), kSure, kEvery);
  note_allocation(block(6), kSure, kEvery);
  shoot();
  EXPECT_EQ(shot_.at_peak.bytes, 5 * kSure);
  EXPECT_EQ(peak_of(site(0x10)), kSure);
  EXPECT_EQ(peak_of(site(0x30)), 3 * kSure);
}

TEST_F(Profile, SumsLifetimes) {
  at_site(0x10);
  note_allocation(block(0), kSure, kEvery);
  note_allocation(block(1), kSure, kEvery);
  fake::advance(30);
  note_free(block(0));
  fake::advance(10);
  note_free(block(1));
  shoot();
  EXPECT_EQ(site(0x10)->lifetime_ms, 70u);
  EXPECT_EQ(shot_.duration_ms, 40u);
}

TEST_F(Profile, OfWhatItDoesNotKnowSaysNothing) {
  note_free(block(7));
  EXPECT_FALSE(note_resize(block(7), 100, kEvery));
  shoot();
  EXPECT_EQ(shot_.live.bytes, 0u);
}

TEST_F(Profile, BlocksThatGrowAreAllocatedAtTheirLength) {
  at_site(0x10);
  note_allocation(block(0), kSure, kEvery);
  EXPECT_TRUE(note_resize(block(0), 3 * kSure, kEvery));
  shoot();
  EXPECT_EQ(site(0x10)->allocated.bytes, 3 * kSure);
  EXPECT_EQ(site(0x10)->live.bytes, 3 * kSure);
  EXPECT_EQ(site(0x10)->live.objects, Amount::kObject);
  EXPECT_TRUE(note_resize(block(0), kSure, kEvery));
  shoot();
  EXPECT_EQ(site(0x10)->allocated.bytes, 3 * kSure);
  EXPECT_EQ(site(0x10)->live.bytes, kSure);
  EXPECT_EQ(shot_.at_peak.bytes, 3 * kSure);
  note_free(block(0));
  shoot();
  EXPECT_EQ(shot_.live.bytes, 0u);
  EXPECT_EQ(shot_.live.objects, 0u);
}

TEST_F(Profile, BlocksThatMoveAreKnownWhereTheyAre) {
  at_site(0x10);
  note_allocation(block(0), kSure, kEvery);
  begin_move(block(0), block(9));
  begin_move(block(1), block(8));  // not known
  note_free(block(0));
  shoot();
  EXPECT_EQ(shot_.live.bytes, kSure);
  note_free(block(9));
  shoot();
  EXPECT_EQ(shot_.live.bytes, 0u);
}

TEST_F(Profile, BlocksThatGoTogetherAreFreedTogether) {
  constexpr size_t kBlocks = 2000;
  at_site(0x10);
  for (size_t i = 0; i != kBlocks; ++i) note_allocation(block(i), kSure, kEvery);
  const void* last = block(1500);
  note_free_each([](const void* one, const void* last_gone) { return one <= last_gone; }, last);
  EXPECT_EQ(fake::told().count, kBlocks + 1501);
  shoot();
  EXPECT_EQ(shot_.live.bytes, (kBlocks - 1501) * kSure);
  for (size_t i = 0; i != kBlocks; ++i) note_free(block(i));
  shoot();
  EXPECT_EQ(shot_.live.bytes, 0u);
}

TEST_F(Profile, WhatIsNotKnownIsMostlySeenWithoutTheLock) {
  constexpr size_t kBlocks = 1000;
  auto known = [] {
    size_t count = 0;
    for (size_t i = 0; i != kBlocks; ++i) count += may_know(block(i));
    return count;
  };
  EXPECT_EQ(known(), 0u);
  for (size_t i = 0; i != kBlocks; i += 2) note_allocation(block(i), kSure, kEvery);
  for (size_t i = 0; i != kBlocks; i += 2) ASSERT_TRUE(may_know(block(i)));
  EXPECT_LT(known(), kBlocks / 2 + 50);
  for (size_t i = 0; i != kBlocks; i += 4) note_free(block(i));
  for (size_t i = 2; i < kBlocks; i += 4) ASSERT_TRUE(may_know(block(i)));
  EXPECT_LT(known(), kBlocks / 4 + 50);
  for (size_t i = 2; i < kBlocks; i += 4) note_free(block(i));
  EXPECT_EQ(known(), 0u);
  note_allocation(block(0), kSure, kEvery);
  start(kEvery);
  EXPECT_EQ(known(), 0u);
}

TEST_F(Profile, AFreeThatNobodyToldOfIsSeenWhenTheMemoryIsUsedAgain) {
  at_site(0x10);
  note_allocation(block(0), kSure, kEvery);
  note_allocation(block(0), kSure, kEvery);
  shoot();
  EXPECT_EQ(shot_.live.bytes, kSure);
  note_free(block(0));
  note_free(block(0));
  shoot();
  EXPECT_EQ(shot_.live.bytes, 0u);
}

TEST_F(Profile, BeginsAnew) {
  at_site(0x10);
  note_allocation(block(0), kSure, kEvery);
  stop();
  EXPECT_EQ(every(), 0u);
  start(2 * kEvery);
  note_free(block(0));
  shoot();
  EXPECT_EQ(shot_.stacks.all().count(), 0u);
  EXPECT_EQ(shot_.live.bytes, 0u);
  EXPECT_EQ(shot_.at_peak.bytes, 0u);
  EXPECT_EQ(shot_.every, 2 * kEvery);
}

TEST_F(Profile, ManyBlocksAndStacksAreKeptApart) {
  constexpr size_t kBlocks = 20000, kSites = 7000;
  for (size_t i = 0; i != kBlocks; ++i) {
    at_site(0x1000 + i % kSites);
    note_allocation(block(i), kSure + i, kEvery);
  }
  for (size_t i = 0; i < kBlocks; i += 2) note_free(block(i));
  for (size_t i = 0; i < kBlocks; i += 2) note_free(block(i));
  shoot();
  EXPECT_EQ(shot_.stacks.all().count(), kSites);
  uint64_t live = 0;
  for (size_t i = 1; i < kBlocks; i += 2) live += kSure + i;
  EXPECT_EQ(shot_.live.bytes, live);
  EXPECT_EQ(shot_.lost, 0u);
  for (size_t i = 1; i < kBlocks; i += 2) note_free(block(i));
  shoot();
  EXPECT_EQ(shot_.live.bytes, 0u);
  for (size_t i = 0; i != kSites; ++i) ASSERT_EQ(shot_.stacks.all()[i].live.objects, 0u);
}

TEST_F(Profile, WithoutMemoryLosesBlocksAndSaysSo) {
  fake::fail_all(fake::Call::commit, true);
  at_site(0x10);
  note_allocation(block(0), kSure, kEvery);
  note_free(block(0));
  Snapshot none = {};
  fake::fail_all(fake::Call::commit, false);
  note_allocation(block(1), kSure, kEvery);
  fake::fail_all(fake::Call::commit, true);
  EXPECT_FALSE(take(none));
  give_back(none);
  fake::fail_all(fake::Call::commit, false);
  shoot();
  EXPECT_EQ(shot_.lost, 1u);
  EXPECT_EQ(shot_.live.bytes, kSure);
}

TEST_F(Profile, ThreadsThatLeaveInTheMiddleOfASampleTakeNoStackFromOthers) {
  static std::jmp_buf out;
  static size_t next = 0;
  at_site(0x10);
  fake::set_terminated(platform::thread_token());
  fake::on_stack([] { std::longjmp(out, 1); });
  for (next = 0; next != 20;)
    if (setjmp(out) == 0) note_allocation(block(next++), kSure, kEvery);
  fake::on_stack(nullptr);
  note_allocation(block(next), kSure, kEvery);
  fake::set_terminated(0);
  shoot();
  ASSERT_NE(site(0x10), nullptr);
  EXPECT_EQ(site(0x10)->live.bytes, kSure);
}

TEST_F(Profile, GivesBackAllItsMemory) {
  stop();
  const size_t before = fake::reserved_bytes();
  start(kEvery);
  for (size_t i = 0; i != 3000; ++i) at_site(i + 1), note_allocation(block(i), kSure, kEvery);
  shoot();
  give_back(shot_);
  start(kEvery);
  EXPECT_EQ(fake::reserved_bytes(), before);
}

TEST_F(Profile, TheCurveHasEveryMomentHoweverLong) {
  at_site(0x10);
  for (size_t i = 0; i != 5000; ++i) {
    fake::advance(3);
    note_allocation(block(i), kSure, kEvery);
  }
  shoot();
  const Curve& curve = shot_.curve;
  EXPECT_GT(curve.count, Curve::kMost / 4);
  EXPECT_LE(curve.count, Curve::kMost);
  for (uint32_t i = 1; i < curve.count; ++i) {
    EXPECT_GT(curve.points[i].ms, curve.points[i - 1].ms);
    EXPECT_GT(curve.points[i].live, curve.points[i - 1].live);
  }
  EXPECT_EQ(curve.points[curve.count - 1].live, uint64_t{5000} * kSure);
}

TEST(ProfileLive, RemovingKeepsWhatCameBehind) {
  LiveBlocks blocks;
  std::map<uintptr_t, uint64_t> expected;
  uint64_t random = 1;
  for (uint64_t step = 0; step != 30000; ++step) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const uintptr_t address = 16 * (1 + (random >> 40) % 900);
    LiveBlock* found = blocks.find(address);
    ASSERT_EQ(found != nullptr, expected.count(address) != 0) << step;
    if (found != nullptr) {
      ASSERT_EQ(found->size, expected[address]);
      blocks.remove(found);
      expected.erase(address);
    } else {
      blocks.add(address)->size = step;
      expected[address] = step;
    }
    ASSERT_EQ(blocks.count(), expected.size());
  }
  blocks.clear();
}

}  // namespace
}  // namespace rh::profile
