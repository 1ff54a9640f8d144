// One thread's heap.
#include "base/bits.h"
#include "heap/heap.h"
#include "heap/large.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "heap/idle.h"
#include "heap/refill.h"
#include "heap/shared.h"
#include "heap/slab_lists.h"
#include "support/heaps.h"

namespace rh {
namespace {

TEST(Heap, BlocksOfEverySizeHoldTheirContent) {
  std::vector<unsigned char*> blocks;
  for (size_t size = 0; size <= 40 * 1024; size += size < 1100 ? 1 : 97) {
    unsigned char* block = static_cast<unsigned char*>(allocate(size));
    ASSERT_NE(block, nullptr);
    ASSERT_EQ(address_of(block) % kBlockAlign, 0u);
    ASSERT_GE(usable_size(block, "test"), size);
    ASSERT_GE(usable_size(block, "test"), good_size(size));
    fill(block, usable_size(block, "test"), static_cast<unsigned>(blocks.size()));
    blocks.push_back(block);
  }
  for (unsigned index = 0; index < blocks.size(); ++index) {
    ASSERT_TRUE(intact(blocks[index], usable_size(blocks[index], "test"), index));
    ASSERT_TRUE(owns(blocks[index]));
    ASSERT_EQ(deallocate(blocks[index]), Freed::done);
  }
}

TEST(Heap, TheFastPathAligns) {
  for (size_t alignment = 1; alignment <= 2 * kTableMax; alignment *= 2) {
    EXPECT_EQ(allocate_aligned_fast(alignment, 0), nullptr);
    EXPECT_EQ(allocate_aligned_fast(alignment, SIZE_MAX), nullptr);
    EXPECT_EQ(allocate_aligned_fast(alignment, kTableMax + 1), nullptr);
    for (size_t size = 1; size <= kTableMax; ++size) {
      void* kept = allocate_aligned(alignment, size);  // fills the bin, or takes from it
      void* block = allocate_aligned_fast(alignment, size);
      if (block != nullptr) {
        ASSERT_EQ(address_of(block) % alignment, 0u) << size;
        ASSERT_GE(usable_size(block, "test"), size);
        deallocate(block);
      }
      deallocate(kept);
    }
  }
  EXPECT_EQ(allocate_aligned_fast(0, 64), nullptr);
}

TEST(Heap, EveryUnitOfALongBlockIsKnown) {
  std::vector<void*> fillers;
  for (size_t units : {3, 63, 64, 65, 127, 130, 1000, 4096, 5000}) {
    fillers.push_back(allocate(units % 7 * kUnitSize + kMaxSmall + 1));  // another entry in the table
    char* block = static_cast<char*>(allocate(units * kUnitSize));
    auto all_known = [&](size_t length) {
      for (size_t unit = 0; unit < length; ++unit) {
        ASSERT_TRUE(owns(block + unit * kUnitSize + 5)) << unit << " of " << length;
        ASSERT_EQ(block_start(block + unit * kUnitSize + 5, "test"), block) << unit;
      }
      char* behind = block + length * kUnitSize;
      ASSERT_FALSE(owns(behind) && block_start(behind, "test") == block) << length;
    };
    all_known(units);
    for (size_t length : {units + 200, units / 2 + 3, units + 70})
      if (resize_in_place(find_block(block), length * kUnitSize, Fit::loose) != nullptr) all_known(length);
    deallocate(block);
    ASSERT_FALSE(owns(block));
    ASSERT_FALSE(owns(block + 64 * kUnitSize) && block_start(block + 64 * kUnitSize, "test") == block);
  }
  for (void* block : fillers) deallocate(block);
  EXPECT_EQ(figures().large_blocks, 0u);
}

TEST(Heap, AllComesBack) {
  std::vector<void*> blocks;
  for (int round = 0; round < 3; ++round) {
    for (size_t size = 1; size < 100000; size += 1 + size / 16)
      for (int count = 0; count < 20; ++count) blocks.push_back(allocate(size));
    for (size_t index = 0; index < blocks.size(); ++index) deallocate(blocks[index * 7919 % blocks.size()]);
    blocks.clear();
  }
  idle::trim();
  EXPECT_EQ(figures().in_use, 0u);
  EXPECT_EQ(figures().arena.in_use, 0u);
  EXPECT_EQ(figures().arena.dirty, 0u);
}

TEST(Heap, EveryAlignmentOfEverySizeOfInterest) {
  std::vector<void*> blocks;
  for (size_t alignment = 1; alignment <= 4 * kMiB; alignment *= 2) {
    for (size_t size :
         {size_t{0}, size_t{1}, size_t{24}, size_t{100}, size_t{1024}, size_t{5000}, kMaxSmall, kMaxSmall + 1, kMiB}) {
      void* block = allocate_aligned(alignment, size);
      ASSERT_NE(block, nullptr) << size << " aligned to " << alignment;
      ASSERT_EQ(address_of(block) % alignment, 0u);
      ASSERT_GE(usable_size(block, "test"), size);
      fill(block, size, static_cast<unsigned>(blocks.size()));
      blocks.push_back(block);
    }
  }
  for (void* block : blocks) deallocate(block);
  idle::trim();
  EXPECT_EQ(figures().arena.in_use, 0u);
}

TEST(Heap, ZeroedBlocksAreZeroWhateverWasThere) {
  for (int round = 0; round < 3; ++round) {
    std::vector<std::pair<void*, size_t>> blocks;
    for (size_t size = 1; size < 6 * kMiB; size += 1 + size / 3) {
      for (int count = 0; count < 30 && size * count < kMiB * 8; ++count) {
        void* block = allocate_zeroed(size);
        ASSERT_NE(block, nullptr);
        ASSERT_TRUE(all_zero(block, size)) << size;
        std::memset(block, 0xee, usable_size(block, "test"));
        blocks.push_back({block, size});
      }
    }
    for (auto [block, size] : blocks) deallocate(block);
    if (round == 1) idle::trim();
  }
}

TEST(Heap, ZeroedBlocksAreZeroWhenTheOsWillNotTakeTheOldMemoryBack) {
  void* block = allocate(8 * kMiB);
  std::memset(block, 0xee, 8 * kMiB);
  deallocate(block);
  fake::fail_all(fake::Call::purge, true);
  fake::fail_all(fake::Call::commit, true);
  block = allocate_zeroed(8 * kMiB);
  ASSERT_NE(block, nullptr);
  EXPECT_TRUE(all_zero(block, 8 * kMiB));
}

TEST(Heap, WhatWasFreedLastIsAllocatedNext) {
  for (size_t size : {16, 100, 1000}) {
    std::vector<void*> blocks;
    for (int count = 0; count < 9990; ++count) blocks.push_back(allocate(size));
    for (int round = 0; round < 3; ++round) {
      size_t refills = own_heap()->refills.value();
      for (size_t index = blocks.size(); index-- > blocks.size() - 5;) deallocate(blocks[index]);
      for (size_t index = blocks.size() - 5; index < blocks.size(); ++index) EXPECT_EQ(allocate(size), blocks[index]);
      EXPECT_EQ(own_heap()->refills.value(), refills);
    }
    free_all(blocks);
  }
}

TEST(Heap, KnowsWhetherASmallBlockIsFreshFromTheOs) {
  SizeClass size_class = size_class::computed(5000);
  Heap* heap = own_heap();
  auto refill_once = [&] {
    LockGuard guard(heap->lock, heap->token.load());
    return refill(heap, size_class);
  };
  slab::Taken fresh = refill_once();
  EXPECT_TRUE(fresh.zero);
  std::memset(static_cast<void*>(fresh.blocks), 0xee, 5000);
  ASSERT_EQ(heap->bins[size_class], nullptr);
  deallocate(fresh.blocks);
  slab::Taken again = refill_once();
  EXPECT_EQ(again.blocks, fresh.blocks);
  EXPECT_FALSE(again.zero);
}

TEST(Heap, ALargeZeroedBlockFreshFromTheOsIsNotTouched) {
  void* block = allocate_zeroed(256 * kMiB);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(fake::calls(fake::Call::purge), 0u);
  EXPECT_TRUE(g_realm.span_of(block)->zero);
}

TEST(Heap, ImpossibleSizesAreRefused) {
  for (size_t size : {kMaxRequest, kMaxRequest + 1, SIZE_MAX, SIZE_MAX - kUnitSize}) {
    EXPECT_EQ(allocate(size), nullptr);
    EXPECT_EQ(allocate_zeroed(size), nullptr);
    EXPECT_EQ(allocate_aligned(kMaxAlignment, size), nullptr);
  }
  EXPECT_EQ(good_size(kMaxRequest + 1), kMaxRequest + 1);
  EXPECT_EQ(good_size(SIZE_MAX), SIZE_MAX);
  EXPECT_NE(allocate(1), nullptr);
}

// ---- slabs --------------------------------------------------------------------------------------

TEST(Heap, NeighboursInTimeAreNeighboursInMemory) {
  uintptr_t before = address_of(allocate(64));
  for (int count = 1; count < 200; ++count) {
    uintptr_t block = address_of(allocate(64));
    ASSERT_EQ(block, before + 64);
    before = block;
  }
}

TEST(Heap, AFullSlabIsUsedAgainOnceEnoughOfItIsFree) {
  const size_class::Properties& own = size_class::kProperties[size_class::computed(64)];
  std::vector<void*> first, others;
  Span* slab = slab_of(allocate(64));
  for (void* block; slab_of(block = allocate(64)) == slab;) first.push_back(block);
  for (int count = 0; count < 600; ++count) others.push_back(allocate(64));
  EXPECT_EQ(slab->state, SlabState::full);
  for (unsigned count = 0; count + 1 < own.worth; ++count) deallocate(first[count]);
  EXPECT_EQ(slab->state, SlabState::full);
  deallocate(first[own.worth]);
  EXPECT_EQ(slab->state, SlabState::available);
  EXPECT_EQ(thread_heap()->marks.value(), 1u);
  // No new slab is needed until the free blocks are used.
  size_t slabs = figures().classes[size_class::computed(64)].slabs;
  unsigned reused = 0;
  for (int count = 0; count < 400; ++count) reused += slab_of(allocate(64)) == slab;
  EXPECT_EQ(reused, own.worth);
  EXPECT_LE(figures().classes[size_class::computed(64)].slabs, slabs + 2);
}

TEST(Heap, EmptySlabsServeAnyClassAndFewAreKept) {
  std::vector<void*> blocks;
  for (int count = 0; count < 20000; ++count) blocks.push_back(allocate(128));
  size_t before = figures().arena.in_use;
  for (void* block : blocks) deallocate(block);
  EXPECT_LT(figures().arena.in_use, before / 8);
  size_t kept = thread_heap()->store.total().count;
  EXPECT_LE(kept, SpanStore::kLeastBudget.count);
  EXPECT_GE(kept, 1u);
  size_t visits = figures().arena.spans_taken;
  allocate(320);
  EXPECT_EQ(thread_heap()->store.total().count, kept - 1);
  EXPECT_EQ(figures().arena.spans_taken, visits);
}

TEST(Heap, WithALockThatNobodyWillReleaseBlocksAreFresh) {
  void* first = allocate(100000);
  fill(first, 100000, 3);
  own_heap()->lock.acquire(77);  // a thread that will never come back
  fake::set_others_are_gone(true);
  void* second = allocate(100000);
  ASSERT_NE(second, nullptr);
  EXPECT_TRUE(inconsistent());
  fill(second, 100000, 4);
  EXPECT_TRUE(intact(first, 100000, 3));
  deallocate(first);
  EXPECT_NE(allocate_zeroed(100000), nullptr);
}

TEST(Heap, ReleaseEmptyGivesBackWhatIsEmptyAndNothingElse) {
  std::vector<void*> blocks;
  for (int count = 0; count < 3000; ++count) blocks.push_back(allocate(100));
  fill(blocks[1500], 100, 9);
  for (size_t index = 0; index < blocks.size(); ++index)
    if (index != 1500) deallocate(blocks[index]);
  Heap* heap = own_heap();
  {
    LockGuard guard(heap->lock);
    empty_bins(heap);
    release_empty(heap, platform::thread_token());
  }
  EXPECT_EQ(figures().in_use, good_size(100));
  EXPECT_EQ(figures().arena.in_use, kUnitSize);
  EXPECT_TRUE(intact(blocks[1500], 100, 9));
  EXPECT_EQ(heap->store.total(), Units{});
  EXPECT_NE(allocate(100), nullptr);
}

// ---- sizes, resizing ----------------------------------------------------------------------------

TEST(Heap, ASmallBlockStaysUntilAQuarterIsUnused) {
  void* block = allocate(1000);
  size_t usable = usable_size(block, "test");
  EXPECT_EQ(resize_in_place(find_block(block), usable), block);
  EXPECT_EQ(resize_in_place(find_block(block), usable / 4 * 3), block);
  EXPECT_EQ(resize_in_place(find_block(block), usable / 4 * 3 - 1), nullptr);
  EXPECT_EQ(resize_in_place(find_block(block), usable + 1), nullptr);
}

TEST(Heap, ALargeBlockShrinksAndGrowsInPlace) {
  unsigned char* block = static_cast<unsigned char*>(allocate(10 * kUnitSize));
  fill(block, 10 * kUnitSize, 1);
  ASSERT_EQ(resize_in_place(find_block(block), 4 * kUnitSize), block);
  EXPECT_EQ(usable_size(block, "test"), 4 * kUnitSize);
  EXPECT_FALSE(owns(block + 4 * kUnitSize));
  ASSERT_EQ(resize_in_place(find_block(block), 7 * kUnitSize - 5), block);
  EXPECT_EQ(usable_size(block, "test"), 7 * kUnitSize);
  EXPECT_TRUE(intact(block, 4 * kUnitSize, 1));
  EXPECT_EQ(resize_in_place(find_block(block), kMaxSmall), nullptr);
  EXPECT_EQ(resize_in_place(find_block(block), kMaxRequest + 1), nullptr);
  void* wall = allocate(3 * kUnitSize);
  ASSERT_EQ(wall, block + 7 * kUnitSize);
  EXPECT_EQ(resize_in_place(find_block(block), 8 * kUnitSize), nullptr);
}

// The next that is as long has its place.
TEST(Heap, ALargeBlockCutToLessThanHalfIsCopied) {
  unsigned char* block = static_cast<unsigned char*>(allocate(2 * kMiB));
  fill(block, 300 * 1024, 1);
  EXPECT_EQ(resize_by_copying(find_block(block), kMaxSmall), nullptr) << "it has a slab to go to";
  EXPECT_EQ(resize_by_copying(find_block(block), kMiB), nullptr) << "half";
  unsigned char* copy = static_cast<unsigned char*>(resize_by_copying(find_block(block), 300 * 1024));
  ASSERT_NE(copy, nullptr);
  EXPECT_NE(copy, block);
  EXPECT_TRUE(intact(copy, 300 * 1024, 1));
  EXPECT_FALSE(owns(block));
  EXPECT_EQ(allocate(2 * kMiB), block);
}

TEST(Heap, ALongBlockIsCutInItsPlace) {
  void* block = allocate(8 * kMiB);
  EXPECT_EQ(resize_by_copying(find_block(block), kMiB + 1), nullptr);
  EXPECT_NE(resize_by_copying(find_block(block), kMiB), nullptr);
}

TEST(Heap, WhereThereIsNoMemoryABlockIsCutInItsPlace) {
  void* block = allocate(2 * kMiB);
  fake::fail_all(fake::Call::commit, true);
  fake::fail_all(fake::Call::reserve, true);
  while (allocate(200 * 1024) != nullptr) {}
  EXPECT_EQ(resize_by_copying(find_block(block), 300 * 1024), nullptr);
  EXPECT_EQ(resize_in_place(find_block(block), 300 * 1024), block);
}

TEST(Heap, PagesOfALargeBlockMove) {
  unsigned char* block = static_cast<unsigned char*>(allocate(4 * kMiB));
  void* wall = allocate(kMaxSmall + 1);
  fill(block, 4 * kMiB, 1);
  unsigned char* moved = static_cast<unsigned char*>(resize_by_moving(find_block(block), 12 * kMiB));
  ASSERT_NE(moved, nullptr);
  EXPECT_NE(moved, block);
  EXPECT_TRUE(intact(moved, 4 * kMiB, 1));
  EXPECT_EQ(usable_size(moved, "test"), 12 * kMiB);
  EXPECT_FALSE(owns(block));
  EXPECT_EQ(fake::calls(fake::Call::move), 1u);
  deallocate(moved);
  deallocate(wall);
  idle::trim();
  EXPECT_EQ(figures().arena.in_use, 0u);
}

TEST(Heap, WhereTheOsCannotMovePagesNothingIsLost) {
  unsigned char* block = static_cast<unsigned char*>(allocate(4 * kMiB));
  fill(block, 4 * kMiB, 1);
  size_t before = figures().arena.in_use;
  fake::fail_all(fake::Call::move, true);
  EXPECT_EQ(resize_by_moving(find_block(block), 12 * kMiB), nullptr);
  EXPECT_TRUE(intact(block, 4 * kMiB, 1));
  EXPECT_EQ(figures().arena.in_use, before);
}

// Moving leaves cold memory behind; smaller blocks are cheaper to copy.
TEST(Heap, PagesOfASmallerBlockStay) {
  void* block = allocate(2 * kMiB);
  EXPECT_EQ(resize_by_moving(find_block(block), 12 * kMiB), nullptr);
  EXPECT_EQ(fake::calls(fake::Call::move), 0u);
}

// Only the OS can reset pages that the program changed; until it does, nobody gets them.
TEST(Heap, AlteredPagesArePlainAgainBeforeTheyAreUsedAgain) {
  void* wall = allocate(kMaxSmall + 1);
  unsigned char* block = static_cast<unsigned char*>(allocate(10 * kUnitSize));
  fill(block, 10 * kUnitSize, 1);
  large::note_altered(block + 9 * kUnitSize, 10);
  ASSERT_EQ(resize_in_place(find_block(block), 6 * kUnitSize), block);
  deallocate(block);
  unsigned char* next = static_cast<unsigned char*>(allocate(10 * kUnitSize));
  EXPECT_EQ(next, block);
  EXPECT_TRUE(all_zero(next, 10 * kUnitSize));
  large::note_altered(next, 1);
  size_t before = figures().arena.in_use;
  fake::fail_all(fake::Call::commit, true);
  deallocate(next);
  fake::fail_all(fake::Call::commit, false);
  EXPECT_EQ(figures().arena.in_use, before);
  EXPECT_NE(allocate(10 * kUnitSize), next);
  deallocate(wall);
}

TEST(Heap, AlteredPagesDoNotMove) {
  void* block = allocate(4 * kMiB);
  large::note_altered(block, 4 * kMiB);
  EXPECT_EQ(resize_by_moving(find_block(block), 12 * kMiB), nullptr);
  EXPECT_EQ(fake::calls(fake::Call::move), 0u);
}

// Of several blocks at once, and of memory that is no large block: slabs are unaffected, because their blocks are not
// the program's alone.
TEST(Heap, AlteredPagesAreThoseOfEachLargeBlockInTheRange) {
  void* room = allocate(10 * kUnitSize);
  void* wall = allocate(kMaxSmall + 1);
  deallocate(room);
  unsigned char* first = static_cast<unsigned char*>(allocate(4 * kUnitSize));
  unsigned char* second = static_cast<unsigned char*>(allocate(6 * kUnitSize));
  ASSERT_EQ(second, first + 4 * kUnitSize);
  fill(first, 4 * kUnitSize, 1);
  fill(second, 6 * kUnitSize, 1);
  large::note_altered(first + kUnitSize, 4 * kUnitSize);
  deallocate(second);
  deallocate(first);
  unsigned char* both = static_cast<unsigned char*>(allocate(10 * kUnitSize));
  EXPECT_EQ(both, first);
  EXPECT_TRUE(all_zero(both, 10 * kUnitSize));
  void* small = allocate(100);
  large::note_altered(small, kMiB);
  deallocate(small);
  deallocate(wall);
}

TEST(Heap, OwnsTellsOfAnyAddress) {
  char* small = static_cast<char*>(allocate(5000));
  char* large = static_cast<char*>(allocate(kMiB));
  for (size_t offset : {size_t{0}, size_t{1}, size_t{4999}}) EXPECT_TRUE(owns(small + offset));
  for (size_t offset : {size_t{0}, size_t{1}, kUnitSize, kMiB - 1}) EXPECT_TRUE(owns(large + offset));
  int other = 0;
  EXPECT_FALSE(owns(nullptr));
  EXPECT_FALSE(owns(&other));
  deallocate(large);
  EXPECT_FALSE(owns(large));
  EXPECT_FALSE(owns(large + kUnitSize));
}

// After its memory went to the OS and merged with its neighbour, a block within it is like any other.
TEST(Heap, OwnsTellsOfBlocksWhereMemoryWasReturnedBefore) {
  char* first = static_cast<char*>(allocate(kMiB));
  char* second = static_cast<char*>(allocate(kMiB));
  void* wall = allocate(kMiB);
  deallocate(first);
  idle::trim();
  deallocate(second);
  idle::trim();
  char* both = static_cast<char*>(allocate(2 * kMiB));
  ASSERT_EQ(both, first);
  for (size_t offset = 0; offset < 2 * kMiB; offset += kUnitSize) ASSERT_TRUE(owns(both + offset)) << offset;
  deallocate(wall);
}

// ---- sizes --------------------------------------------------------------------------------------

TEST(Heap, TellsTheSizeOfItsOwnSmallBlocksAtOnce) {
  size_t size = 0;
  for (size_t asked : {size_t{0}, size_t{16}, size_t{100}, size_t{1000}}) {
    void* block = allocate(asked);
    ASSERT_TRUE(requested_size_fast(block, &size));
    EXPECT_EQ(size, requested_size(block, "test"));
    std::thread([block] {
      deallocate(allocate(1));  // it has a heap, and the block is not from it
      size_t untouched = 77;
      EXPECT_FALSE(requested_size_fast(block, &untouched));
      EXPECT_EQ(untouched, 77u);
    }).join();
    deallocate(block);
  }
  void* large = allocate(3 * kMaxSmall);
  int foreign = 0;
  for (void* block : {large, static_cast<void*>(&foreign), static_cast<void*>(nullptr)})
    EXPECT_FALSE(requested_size_fast(block, &size));
  deallocate(large);
}

class ExactSizes : public testing::Test {
 protected:
  void SetUp() override {
    if (!kExactSizes) GTEST_SKIP() << "this build does not keep them";
  }
};

TEST_F(ExactSizes, AreWhatWasAskedFor) {
  std::map<void*, size_t> sizes;
  for (size_t size = 0; size < 3 * kMaxSmall; size += size < 1100 ? 1 : 97) {
    for (void* block : {allocate(size), allocate_zeroed(size), allocate_aligned(64, size)}) {
      ASSERT_NE(block, nullptr);
      std::memset(block, 0x5a, size);
      sizes[block] = size;
    }
  }
  for (auto [block, size] : sizes) {
    ASSERT_EQ(requested_size(block, "test"), size);
    deallocate(block);
  }
}

TEST_F(ExactSizes, TellWhatWasFreedWithANote) {
  for (size_t size : {size_t{0}, size_t{16}, size_t{100}, size_t{20000}, 3 * kMaxSmall}) {
    char* block = static_cast<char*>(allocate(size));
    EXPECT_TRUE(is_live(block));
    EXPECT_FALSE(deallocate_live(block + 1));
    EXPECT_FALSE(deallocate_live(block + 8));
    bool small = size <= kMaxSmall;
    EXPECT_EQ(own_live_slab(block), small ? slab::head(g_realm.span_of(block)) : nullptr);
    EXPECT_TRUE(deallocate_live(block));
    EXPECT_FALSE(is_live(block));
    EXPECT_EQ(own_live_slab(block), nullptr);
    EXPECT_FALSE(deallocate_live(block));
    // Handed out again it is live again.
    EXPECT_TRUE(is_live(allocate(size)));
  }
  EXPECT_FALSE(is_live(this));
  EXPECT_FALSE(is_live(nullptr));
}

TEST_F(ExactSizes, TellWhatAnotherThreadFreed) {
  void* block = allocate(100);
  Actor other;
  other([&] { EXPECT_TRUE(deallocate_live(block)); });
  other([&] { EXPECT_FALSE(deallocate_live(block)); });
  other.end();
  EXPECT_FALSE(deallocate_live(block));
}

TEST_F(ExactSizes, FollowABlockThatIsResizedInPlace) {
  for (size_t from : {16, 17, 100, 1000, 1025, 5000, 32768, 40000, 1000000}) {
    for (size_t percent : {0, 1, 30, 60, 99, 100}) {
      void* block = allocate(from);
      size_t to = from * percent / 100;
      ASSERT_EQ(resize_in_place(find_block(block), to, Fit::loose), block) << from << " to " << to;
      EXPECT_EQ(requested_size(block, "test"), to);
      deallocate(block);
    }
  }
}

TEST_F(ExactSizes, OfFirstClassHeapsToo) {
  Heap* heap = shared::create();
  for (size_t size : {0, 1, 16, 40, 4000, 40000}) {
    EXPECT_EQ(requested_size(allocate_in(heap, 16, size, false), "test"), size);
    EXPECT_EQ(requested_size(allocate_in(heap, 16, size, true), "test"), size);
  }
  destroy_heap(heap);
}

TEST(Heap, BlockStartIsFoundFromWithin) {
  for (size_t size : {1, 16, 48, 112, 1000, 5000, 20000, 32768, 40000, 1000000}) {
    char* block = static_cast<char*>(allocate(size));
    for (size_t offset : {size_t{0}, size / 2, size - 1})
      ASSERT_EQ(block_start(block + offset, "test"), block) << size << ", " << offset;
  }
}

class HeapDeath : public testing::Test {};

TEST_F(HeapDeath, FreeWithinALargeBlock) {
  char* block = static_cast<char*>(allocate(kMiB));
  EXPECT_DEATH(deallocate(block + 16), "reheap: free of invalid pointer 0x\\w+: not the start of a live block");
  EXPECT_DEATH(deallocate(block + kUnitSize), "reheap: free of invalid pointer");
}

TEST_F(HeapDeath, FreeOfALargeBlockTwice) {
  void* block = allocate(kMiB);
  deallocate(block);
  EXPECT_DEATH(deallocate(block), "reheap: free of invalid pointer");
  EXPECT_DEATH(usable_size(block, "realloc"), "reheap: realloc of invalid pointer");
}

// A thread that never allocated frees a free block.
TEST_F(HeapDeath, FreeOfWhatIsFreeByAThreadWithoutAHeap) {
  void* block = allocate(kMiB);
  deallocate(block);
  Actor other;
  EXPECT_DEATH(other([&] { deallocate(block); }), "reheap: free of invalid pointer");
}

TEST(Heap, NullIsNothingToFree) {
  EXPECT_EQ(deallocate(nullptr), Freed::done);
  void* block = allocate(1);
  EXPECT_EQ(deallocate(nullptr), Freed::done);
  Actor other;
  other([] { EXPECT_EQ(deallocate(nullptr), Freed::done); });
  deallocate(block);
}

TEST(Heap, AnothersPointerIsForeign) {
  int other = 0;
  EXPECT_EQ(deallocate(&other), Freed::foreign);
  allocate(1);
  EXPECT_EQ(deallocate(&other), Freed::foreign);
  Actor heapless;
  heapless([&] { EXPECT_EQ(deallocate(&other), Freed::foreign); });
  EXPECT_EQ(other, 0);
}

// A foreign mapping amid ours.
TEST(Heap, APointerInAGapIsForeign) {
  if (!platform::places_freely()) GTEST_SKIP() << "no address can be chosen here";
  allocate(1);
  uintptr_t gap = g_realm.base() + 64 * kMiB;
  fake::occupy(gap, kUnitSize);
  void* beyond = allocate(100 * kMiB);
  ASSERT_GT(address_of(beyond), gap);
  void* others = reinterpret_cast<void*>(gap);
  ASSERT_TRUE(g_realm.holds(others));
  EXPECT_FALSE(in_realm(others));
  EXPECT_FALSE(owns(others));
  EXPECT_EQ(deallocate(others), Freed::foreign);
  EXPECT_TRUE(in_realm(static_cast<char*>(beyond) + kMiB));
  EXPECT_DEATH(deallocate(static_cast<char*>(beyond) + kMiB), "reheap: free of invalid pointer");
}

}  // namespace
}  // namespace rh
