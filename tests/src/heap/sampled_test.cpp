// Blocks that a profile tells of: that they are found, and stand for what was allocated.
#include "heap/sampled.h"

#include <gtest/gtest.h>

#include <vector>

#include "heap/fork.h"
#include "heap/idle.h"
#include "support/heaps.h"

namespace rh {
namespace {

struct Sum {
  double allocated = 0, live = 0, peak = 0, objects = 0;
};

class Sampled : public testing::Test {
 protected:
  ~Sampled() override { sampled::stop(); }

  static void at_site(uintptr_t site) { fake::set_stack(&site, 1); }

  static Sum found(uintptr_t site) {
    profile::Snapshot shot = {};
    EXPECT_TRUE(profile::take(shot));
    Sum sum;
    for (size_t i = 0; i != shot.stacks.all().count(); ++i) {
      const profile::Stack& stack = shot.stacks.all()[i];
      if (stack.depth != 1 || shot.stacks.frames()[stack.first_frame] != site) continue;
      sum.allocated = static_cast<double>(stack.allocated.bytes);
      sum.objects = static_cast<double>(stack.allocated.objects) / profile::Amount::kObject;
      sum.live = static_cast<double>(stack.live.bytes);
      sum.peak = static_cast<double>(stack.peak == shot.peak ? stack.at_peak.bytes : stack.live.bytes);
    }
    profile::give_back(shot);
    return sum;
  }
};

struct Planted {
  uintptr_t site;
  size_t size;
  size_t keep_every;  // of so many blocks one is not freed before the end
};

// In a hundred runs, each with some hundred samples.
TEST_F(Sampled, PlantedSitesAreFoundAsLargeAsTheyAre) {
  constexpr Planted kPlanted[] = {{0x10, 48, 4}, {0x20, 1000, 2}, {0x30, 30000, 8}, {0x40, 100000, 1}};
  constexpr size_t kRuns = 100, kBytes = 1 << 20;
  Sum sums[4] = {}, real[4] = {};
  for (size_t run = 0; run != kRuns; ++run) {
    sampled::start(16 * 1024);
    std::vector<void*> kept;
    for (size_t which = 0; which != 4; ++which) {
      const Planted& planted = kPlanted[which];
      at_site(planted.site);
      for (size_t bytes = 0, i = 0; bytes < kBytes; bytes += planted.size, ++i) {
        void* block = allocate(planted.size);
        const bool keeps = i % planted.keep_every == 0;
        real[which].allocated += static_cast<double>(planted.size);
        real[which].objects += 1;
        if (keeps) real[which].live += static_cast<double>(planted.size);
        if (keeps)
          kept.push_back(block);
        else
          deallocate(block);
      }
    }
    for (size_t which = 0; which != 4; ++which) {
      const Sum sum = found(kPlanted[which].site);
      sums[which].allocated += sum.allocated;
      sums[which].live += sum.live;
      sums[which].objects += sum.objects;
    }
    for (void* block : kept) deallocate(block);
    for (const Planted& planted : kPlanted) ASSERT_EQ(found(planted.site).live, 0);
  }
  for (size_t which = 0; which != 4; ++which) {
    EXPECT_NEAR(sums[which].allocated / real[which].allocated, 1, 0.05) << kPlanted[which].size;
    EXPECT_NEAR(sums[which].objects / real[which].objects, 1, 0.05) << kPlanted[which].size;
    EXPECT_NEAR(sums[which].live / real[which].live, 1, 0.05) << kPlanted[which].size;
  }
}

// ---- in heaps of the program's ------------------------------------------------------------------

// Whichever heap of several the blocks come from, and whatever the thread allocates beside them, of the same classes.
TEST_F(Sampled, PlantedSitesInHeapsAreFoundAsLargeAsTheyAre) {
  constexpr Planted kPlanted[] = {{0x10, 48, 4}, {0x20, 1000, 2}, {0x30, 30000, 8}, {0x40, 100000, 1}};
  constexpr uintptr_t kBeside = 0x50;
  constexpr size_t kRuns = 100, kBytes = 1 << 20;
  Sum sums[5] = {}, real[5] = {};
  auto count = [](Sum& sum, const Planted& planted, bool keeps) {
    sum.allocated += static_cast<double>(planted.size);
    sum.objects += 1;
    if (keeps) sum.live += static_cast<double>(planted.size);
  };
  for (size_t run = 0; run != kRuns; ++run) {
    sampled::start(16 * 1024);
    Heap* heaps[] = {shared::create(), create_bound_heap(), shared::create()};
    std::vector<void*> kept;
    for (size_t which = 0; which != 4; ++which) {
      const Planted& planted = kPlanted[which];
      for (size_t bytes = 0, i = 0; bytes < kBytes; bytes += planted.size, ++i) {
        at_site(planted.site);
        void* block = allocate_in(heaps[i % 3], kBlockAlign, planted.size, i % 2 == 0);
        at_site(kBeside);
        void* beside = allocate(planted.size);
        const bool keeps = i % planted.keep_every == 0;
        count(real[which], planted, keeps);
        count(real[4], planted, false);
        if (!keeps) free_as_a_program_does(block);
        free_as_a_program_does(beside);
      }
    }
    for (size_t which = 0; which != 5; ++which) {
      const Sum sum = found(which < 4 ? kPlanted[which].site : kBeside);
      sums[which].allocated += sum.allocated;
      sums[which].live += sum.live;
      sums[which].objects += sum.objects;
    }
    for (Heap* heap : heaps) destroy_heap(heap);
    for (const Planted& planted : kPlanted) ASSERT_EQ(found(planted.site).live, 0);
  }
  for (size_t which = 0; which != 5; ++which) {
    EXPECT_NEAR(sums[which].allocated / real[which].allocated, 1, 0.05) << which;
    EXPECT_NEAR(sums[which].objects / real[which].objects, 1, 0.05) << which;
    if (which != 4) EXPECT_NEAR(sums[which].live / real[which].live, 1, 0.05) << which;
  }
  EXPECT_EQ(sums[4].live, 0);
}

// The parameter: whether the heap is bound to a thread.
class SampledInHeaps : public Sampled, public testing::WithParamInterface<bool> {
 protected:
  SampledInHeaps() {
    sampled::start(1);
    at_site(0x10);
  }
  ~SampledInHeaps() override { destroy_heap(heap_); }

  void* take(size_t size) { return allocate_in(heap_, kBlockAlign, size, false); }

  static Heap* make() { return GetParam() ? create_bound_heap() : shared::create(); }

  Heap* heap_ = make();
};
INSTANTIATE_TEST_SUITE_P(Bound, SampledInHeaps, testing::Bool());

TEST_P(SampledInHeaps, BlocksStayAndAreKnown) {
  std::vector<void*> blocks;
  for (size_t size : {100, 1000, 10000, 100000, 1000000}) blocks.push_back(take(size));
  EXPECT_NEAR(found(0x10).live, 1111100, 1);
  for (void* block : blocks) EXPECT_EQ(shared::heap_of(find_block(block).span), heap_);
  for (void* block : blocks) free_as_a_program_does(block);
  EXPECT_EQ(found(0x10).live, 0);
}

TEST_P(SampledInHeaps, HowOthersFreeThemIsNoted) {
  void* blocks[] = {take(100), take(100), take(5000), take(500000), take(500000)};
  EXPECT_NEAR(found(0x10).live, 1005200, 1);
  Actor other;
  other([&] {
    for (size_t at : {0, 2, 3}) free_as_a_program_does(blocks[at]);
  });
  EXPECT_NEAR(found(0x10).live, 500100, 1);
  sampled::stop();
  void* unknown = take(100);
  free_as_a_program_does(blocks[1]);
  free_as_a_program_does(unknown);
  EXPECT_TRUE(deallocate_live(blocks[4]));
  EXPECT_EQ(found(0x10).live, 0);
}

TEST_P(SampledInHeaps, TheyEndWithIt) {
  Heap* other = shared::create();
  for (bool ends : {false, true}) {
    at_site(0x10);
    for (size_t count = 0; count != 1000; ++count) take(count % 10 == 0 ? 50000 : 100);
    at_site(0x20);
    void* kept = allocate_in(other, kBlockAlign, 100, false);
    void* of_thread = allocate(100);
    EXPECT_NEAR(found(0x10).live, 900 * 100 + 100 * 50000, 1);
    const size_t told = fake::told().count;
    if (ends) {
      destroy_heap(heap_);
      heap_ = make();
    } else {
      reset_heap(heap_);
    }
    EXPECT_EQ(fake::told().count - told, 1000u);
    EXPECT_EQ(found(0x10).live, 0);
    EXPECT_NEAR(found(0x20).live, 200, 1);
    free_as_a_program_does(kept);
    free_as_a_program_does(of_thread);
    EXPECT_EQ(found(0x20).live, 0);
  }
  destroy_heap(other);
}

// What lies there later is not taken for it.
TEST_P(SampledInHeaps, TheMemoryOfOneThatEndedIsOthers) {
  for (size_t count = 0; count != 100; ++count) take(100);
  destroy_heap(heap_);
  sampled::stop();
  heap_ = make();
  for (size_t count = 0; count != 100; ++count) free_as_a_program_does(take(100));
  EXPECT_EQ(found(0x10).live, 0);
  EXPECT_NEAR(found(0x10).allocated, 10000, 1);
}

TEST_P(SampledInHeaps, ALimitHoldsWhatItHeldWithoutAProfile) {
  static constexpr size_t kLimit = 10 * kUnitSize;
  auto fill = [] {
    Heap* heap = make();
    heap->account.set_limit(kLimit);
    size_t count = 0;
    while (allocate_in(heap, kBlockAlign, 200, false) != nullptr) ++count;
    EXPECT_LE(heap->account.held(), kLimit);
    destroy_heap(heap);
    return count;
  };
  const size_t sampled = fill();
  EXPECT_EQ(found(0x10).live, 0);
  sampled::stop();
  EXPECT_EQ(fill(), sampled);
  EXPECT_GT(sampled, kLimit / 300);
}

TEST_P(SampledInHeaps, OneThatIsResizedInPlaceIsKnownAtItsLength) {
  void* block = take(50000);
  EXPECT_NE(resize_in_place(find_block(block), 80000), nullptr);
  EXPECT_NEAR(found(0x10).live, 80000, 1);
  EXPECT_EQ(resize_by_moving(find_block(block), 100000), nullptr);
  EXPECT_NE(resize_in_place(find_block(block), 40000), nullptr);
  EXPECT_NEAR(found(0x10).live, 40000, 1);
  free_as_a_program_does(block);
  EXPECT_EQ(found(0x10).live, 0);
}

TEST_P(SampledInHeaps, AChildGoesOnWithWhatItHas) {
  void* block = take(5000);
  fork::before();
  fork::after_in_child();
  EXPECT_NEAR(found(0x10).live, 5000, 1);
  free_as_a_program_does(block);
  EXPECT_EQ(found(0x10).live, 0);
  take(5000);
  reset_heap(heap_);
  EXPECT_EQ(found(0x10).live, 0);
}

TEST_P(SampledInHeaps, OnGuardedPagesTheyAreKnownToo) {
  guards::set_every(1);
  void* blocks[] = {take(100), take(200), take(300)};
  for (void* block : blocks) ASSERT_TRUE(find_block(block).is_guarded());
  EXPECT_NEAR(found(0x10).live, 600, 1);
  free_as_a_program_does(blocks[0]);
  EXPECT_NEAR(found(0x10).live, 500, 1);
  reset_heap(heap_);
  EXPECT_EQ(found(0x10).live, 0);
  guards::set_every(0);
}

// A block that grows is as likely to be known as one that was made so long.
TEST_F(Sampled, BlocksOfHeapsThatGrowInPlaceAreFoundAsLargeAsTheyAre) {
  constexpr size_t kFirst = 64 * 1024, kLast = 512 * 1024;
  double sum = 0, blocks = 0, grown = 0;
  Heap* heap = shared::create();
  for (int run = 0; run != 2000; ++run) {
    sampled::start(256 * 1024);
    at_site(0x10);
    void* block = allocate_in(heap, kBlockAlign, kFirst, false);
    for (size_t size = 2 * kFirst; size <= kLast; size += kFirst) {
      if (resize_in_place(find_block(block), size)) {
        grown += 1;
        continue;
      }
      void* copy = allocate_in(heap, kBlockAlign, size, false);
      free_as_a_program_does(block);
      block = copy;
    }
    sum += found(0x10).live;
    blocks += 1;
    free_as_a_program_does(block);
    ASSERT_EQ(found(0x10).live, 0);
  }
  EXPECT_GT(grown, blocks);
  EXPECT_NEAR(sum / blocks / kLast, 1, 0.05);
  destroy_heap(heap);
}

// ---- of threads ---------------------------------------------------------------------------------

// What a class has passed is used by some allocations and taken back for others.
TEST_F(Sampled, HowBlocksGoRoundDoesNotMatter) {
  constexpr Planted kPlanted[] = {{0x10, 24, 0}, {0x20, 100, 0}, {0x30, 130, 0}, {0x40, 600, 0}, {0x50, 9000, 0}};
  constexpr size_t kRounds = 100000;
  sampled::start(8 * 1024);
  for (size_t round = 0; round != kRounds; ++round) {
    for (const Planted& planted : kPlanted) {
      at_site(planted.site);
      void* block = (round & 1) != 0 ? allocate(planted.size) : allocate_zeroed(planted.size);
      at_site(0x60);
      void* other = round % 3 == 0 ? allocate_aligned(32, planted.size) : nullptr;
      deallocate(block);
      deallocate(other);
    }
    if (round % 64 == 0) idle::reclaim();
  }
  for (const Planted& planted : kPlanted) EXPECT_NEAR(found(planted.site).objects / kRounds, 1, 0.3) << planted.size;
  EXPECT_NEAR(found(0x40).allocated / (600 * kRounds), 1, 0.06);
  EXPECT_NEAR(found(0x50).allocated / (9000 * kRounds), 1, 0.06);
}

TEST_F(Sampled, OfOneInOneEveryBlockIsKnown) {
  sampled::start(1);
  at_site(0x10);
  std::vector<void*> blocks;
  for (size_t size : {100, 1000, 10000, 100000, 1000000}) {
    blocks.push_back(allocate(size));
    blocks.push_back(allocate_zeroed(size));
    blocks.push_back(allocate_aligned(4096, size));
    for (size_t at = 0; at != size; ++at) ASSERT_EQ(static_cast<char*>(blocks[blocks.size() - 2])[at], 0);
    ASSERT_EQ(address_of(blocks.back()) % 4096, 0u);
    for (void* block : blocks) ASSERT_TRUE(is_live(block));
  }
  EXPECT_NEAR(found(0x10).live, 3 * 1111100, 1);
  for (void* block : blocks) EXPECT_EQ(shared::heap_of(find_block(block).span), nullptr);
  for (void* block : blocks) deallocate(block);
  EXPECT_EQ(found(0x10).live, 0);
  EXPECT_NEAR(found(0x10).peak, 3 * 1111100, 1);
}

TEST_F(Sampled, FreesAfterTheEndAreNoted) {
  sampled::start(1);
  at_site(0x10);
  void* small = allocate(5000);
  void* large = allocate(500000);
  sampled::stop();
  void* other = allocate(5000);
  EXPECT_NEAR(found(0x10).live, 505000, 1);
  deallocate(small);
  deallocate(large);
  deallocate(other);
  EXPECT_EQ(found(0x10).live, 0);
}

TEST_F(Sampled, BlocksFreedByOthersAreNoted) {
  sampled::start(1);
  at_site(0x10);
  void* small = allocate(5000);
  void* large = allocate(500000);
  Actor other;
  other([&] {
    deallocate(small);
    deallocate(large);
  });
  EXPECT_EQ(found(0x10).live, 0);
}

TEST_F(Sampled, AThreadsFirstBlockIsKnownToo) {
  sampled::start(1);
  at_site(0x10);
  Actor other;
  void* block = other([] { return allocate(5000); });
  EXPECT_NEAR(found(0x10).live, 5000, 1);
  deallocate(block);
}

// A block that grows is as likely to be known as one that was made so long.
TEST_F(Sampled, BlocksThatGrowInPlaceAreFoundAsLargeAsTheyAre) {
  constexpr size_t kFirst = 64 * 1024, kLast = 512 * 1024;
  double sum = 0, blocks = 0;
  for (int run = 0; run != 2000; ++run) {
    sampled::start(256 * 1024);
    at_site(0x10);
    void* block = allocate(kFirst);
    for (size_t size = 2 * kFirst; size <= kLast; size += kFirst) {
      BlockAt at = find_block(block);
      if (resize_in_place(at, size)) continue;
      if (void* moved = resize_by_moving(at, size)) {
        block = moved;
        continue;
      }
      void* copy = allocate(size);
      deallocate(block);
      block = copy;
    }
    sum += found(0x10).live;
    blocks += 1;
    deallocate(block);
    ASSERT_EQ(found(0x10).live, 0);
  }
  EXPECT_NEAR(sum / blocks / kLast, 1, 0.05);
}

// Its pages are moved where an unknown block's would be.
TEST_F(Sampled, ALongBlockMovesAndIsKnown) {
  constexpr size_t kFirst = 8 << 20, kLast = 64 << 20;
  sampled::start(1);
  at_site(0x10);
  void* block = allocate(kFirst);
  static_cast<char*>(block)[kFirst - 1] = 'x';
  fake::fail_nth(fake::Call::move, 1);
  EXPECT_EQ(resize_by_moving(find_block(block), kLast), nullptr);
  EXPECT_NEAR(found(0x10).live, kFirst, 1);
  void* moved = resize_by_moving(find_block(block), kLast);
  ASSERT_NE(moved, nullptr);
  EXPECT_EQ(static_cast<char*>(moved)[kFirst - 1], 'x');
  EXPECT_NEAR(found(0x10).live, kLast, 1);
  void* other = allocate(kFirst);
  EXPECT_NEAR(found(0x10).live, kLast + kFirst, 1);
  deallocate(moved);
  EXPECT_NEAR(found(0x10).live, kFirst, 1);
  deallocate(other);
  EXPECT_EQ(found(0x10).live, 0);
}

TEST_F(Sampled, TheRateCanChangeWhileItRuns) {
  sampled::start(uint64_t{1} << 40);
  at_site(0x10);
  std::vector<void*> blocks(20);
  for (void*& block : blocks) block = allocate(64);
  blocks.push_back(allocate(5000));
  EXPECT_EQ(found(0x10).live, 0);
  sampled::set_every(1);
  blocks.push_back(allocate(5000));
  blocks.push_back(allocate(64));
  EXPECT_NEAR(found(0x10).live, 5064, 1);
  for (void* block : blocks) deallocate(block);
  EXPECT_EQ(found(0x10).live, 0);
  sampled::stop();
  sampled::set_every(1);
  EXPECT_EQ(profile::every(), 0u);
}

TEST_F(Sampled, WithoutMemoryForTheBooksBlocksAreMadeAllTheSame) {
  sampled::start(1);
  at_site(0x10);
  deallocate(allocate(5000));
  fake::limit_reserved(fake::reserved_bytes());
  std::vector<void*> blocks;
  for (int i = 0; i != 20000; ++i)
    if (void* block = allocate(64)) blocks.push_back(block);
  EXPECT_GT(blocks.size(), 1000u);
  for (void* block : blocks) deallocate(block);
  fake::limit_reserved(SIZE_MAX);
  EXPECT_EQ(found(0x10).live, 0);
}

TEST_F(Sampled, AChildGoesOnWithWhatItHas) {
  sampled::start(1);
  at_site(0x10);
  void* block = allocate(5000);
  fork::before();
  fork::after_in_child();
  EXPECT_NEAR(found(0x10).live, 5000, 1);
  deallocate(block);
  EXPECT_EQ(found(0x10).live, 0);
}

TEST_F(Sampled, AChildThatMissedTheBooksBeginsAnew) {
  sampled::start(1);
  at_site(0x10);
  void* block = allocate(5000);
  Actor other;
  other([] { profile::lock().acquire(); });
  fake::on_back_off([] { fake::advance(10); });
  fork::before();
  fork::after_in_child();
  EXPECT_EQ(found(0x10).live, 0);
  deallocate(block);
  void* fresh = allocate(7000);
  EXPECT_NEAR(found(0x10).live, 7000, 1);
  deallocate(fresh);
}

}  // namespace
}  // namespace rh
