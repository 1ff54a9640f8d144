// What the hardened build adds, over the fake platform.
#include "entry/start.h"
#include "hardened/hardened.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "arena/bars.h"
#include "hardened/empty.h"
#include "hardened/misuse.h"
#include "hardened/small.h"
#include "heap/idle.h"
#include "heap/registry.h"
#include "heap/shared.h"
#include "platform/fake/fake.h"
#include "support/heaps.h"

namespace rh {
namespace {

using hardened::Maker;

// As malloc and free do: by the shortest way, where it leads anywhere.
unsigned char* make(size_t size, Heap* heap = nullptr) {
  void* block = heap == nullptr ? hardened::allocate_fast(size, Maker::c) : nullptr;
  if (block == nullptr) block = hardened::allocate(heap, kBlockAlign, size, Maker::c);
  return static_cast<unsigned char*>(block);
}

Freed release_as(void* block, Maker maker, size_t size = hardened::kUnknown) {
  using hardened::Led;
  const Led led = hardened::free_fast(block, maker, size);
  if (led == Led::to_its_end || (led == Led::seldom && hardened::free_seldom(block, maker, size))) return Freed::done;
  return hardened::free(block, maker, size);
}

unsigned char* make_zeroed(size_t size, Heap* heap = nullptr) {
  return static_cast<unsigned char*>(hardened::allocate(heap, kBlockAlign, size, Maker::c, true));
}

constexpr size_t kMostZero = kMaxSmall - 8;  // up to here blocks read as zero without being asked to

void release(void* block) { ASSERT_EQ(release_as(block, Maker::c), Freed::done); }

bool is_zero(const unsigned char* block, size_t size) {
  return std::all_of(block, block + size, [](unsigned char byte) { return byte == 0; });
}

void flush() { hardened::flush(own_heap_if_any()); }

// A class that is in use has slabs of its own, and what is free in them is taken again.
void use(size_t size) {
  std::vector<unsigned char*> blocks;
  for (int count = 0; count < 2000; ++count) blocks.push_back(make(size));
  for (unsigned char* block : blocks) release(block);
  flush();
}

constexpr size_t kSizes[] = {1, 8, 24, 100, 1000, 5000, 32760, 32761, 40000, 200000, 300000, 3000000, 20000000};

TEST(Hardened, BlocksReadAsZeroAndHaveTheirSize) {
  for (int round = 0; round < 40; ++round) {
    for (size_t size : kSizes) {
      unsigned char* block = size <= kMostZero ? make(size) : make_zeroed(size);
      ASSERT_NE(block, nullptr) << size;
      ASSERT_EQ(hardened::size_of(block, "test"), size);
      ASSERT_TRUE(is_zero(block, size)) << size;
      std::memset(block, 0xee, size);
      release(block);
    }
  }
}

TEST(Hardened, ABlockWaitsBeforeItIsUsedAgain) {
  use(24);
  unsigned char* block = make(24);
  release(block);
  for (unsigned count = 1; count < hardened::kQuarantine; ++count) {
    unsigned char* next = make(24);
    ASSERT_NE(next, block);
    release(next);
  }
  // But not for ever.
  bool is_back = false;
  for (int count = 0; count < 100000 && !is_back; ++count) {
    unsigned char* next = make(24);
    is_back = next == block;
    release(next);
  }
  EXPECT_TRUE(is_back);
}

// How many frees of other blocks pass before the memory of one is used again.
unsigned frees_before_reuse() {
  unsigned char* block = make(24);
  release(block);
  for (unsigned count = 0;; ++count) {
    unsigned char* next = make(24);
    release(next);
    if (next == block) return count;
  }
}

TEST(Hardened, HowManyBlocksWaitCanBeSetAtAnyTime) {
  use(24);
  for (unsigned blocks : {256u, 1u, 8u, 200u, 2u}) {
    hardened::g_quarantine.store(blocks);
    flush();
    unsigned frees = frees_before_reuse();
    EXPECT_GE(frees + 1, blocks);
  }
  hardened::g_quarantine.store(1);
  flush();
  EXPECT_LE(frees_before_reuse(), 2u);
}

TEST(Hardened, ResizedBlocksKeepTheirContent) {
  for (size_t from : kSizes) {
    for (size_t to : kSizes) {
      unsigned char* block = make(from);
      fill(block, from, 7);
      auto* resized = static_cast<unsigned char*>(hardened::resize(block, to));
      if (resized == nullptr) {
        ASSERT_TRUE(intact(block, from, 7));
        ASSERT_EQ(hardened::size_of(block, "test"), from);
        release(block);
        continue;
      }
      ASSERT_EQ(hardened::size_of(resized, "test"), to);
      ASSERT_TRUE(intact(resized, std::min(from, to), 7)) << from << " to " << to;
      if (to > from && to <= kMostZero) ASSERT_TRUE(is_zero(resized + from, to - from)) << from << " to " << to;
      std::memset(resized, 0xee, to);
      release(resized);
    }
  }
}

TEST(Hardened, WithoutMemoryThereIsNoBlockAndNothingBreaks) {
  std::vector<unsigned char*> blocks;
  fake::limit_committed(fake::committed_bytes() + 16 * kMiB);
  while (unsigned char* block = make(5000)) blocks.push_back(block);
  ASSERT_GT(blocks.size(), 500u);
  EXPECT_EQ(make(100000), nullptr);
  for (unsigned char* block : blocks) release(block);
  flush();
  unsigned char* block = make(100000);
  ASSERT_NE(block, nullptr);
  release(block);
}

TEST(Hardened, WhatWasKeptFromUseCanBeLetGo) {
  std::vector<unsigned char*> blocks;
  for (size_t size : kSizes) blocks.push_back(make(size));
  for (unsigned char* block : blocks) release(block);
  flush();
  for (unsigned char* block : blocks) EXPECT_DEATH(hardened::free(block, Maker::c), "free");
}

// What an ended thread had: its own slabs' blocks, another's, and large ones.
void leave_much_delayed(Actor& ends, Actor& other) {
  idle::let_go_by([](Heap* heap) { hardened::flush(heap); });
  std::vector<unsigned char*> blocks;
  other([&] { blocks = {make(100), make(3000)}; });
  ends([&] {
    for (size_t size : kSizes) blocks.push_back(make(size));
    for (unsigned char* block : blocks) release(block);
  });
  ends.end();
}

TEST(Hardened, ATrimLetsGoOfWhatEndedThreadsHaveKeptFromUse) {
  Actor ends, other;
  leave_much_delayed(ends, other);
  other([] {
    idle::trim();
    idle::trim();  // what was another's may have come to a heap that was looked at before
  });
  EXPECT_EQ(figures().in_use, 0u);
  EXPECT_EQ(figures().arena.in_use, 0u);
}

// Some of its slabs are another's by then.
TEST(Hardened, SoDoesTheHelper) {
  Actor ends, other;
  leave_much_delayed(ends, other);
  other([] {
    registry::adopt_slabs(own_heap(), size_class::of(100));
    for (int count = 0; count < 20; ++count) release(make(500000));
    flush();
  });
  ASSERT_TRUE(fake::helper_is_there());
  step_for(3000);
  EXPECT_LE(figures().arena.in_use, 2 * kUnitSize) << "the other's";
}

// While it is delayed it has no memory, and there may be none for it when its time has come.
TEST(Hardened, ALongBlockIsNotLostWhereMemoryIsShort) {
  if (!platform::kChargesUntouched) GTEST_SKIP() << "here a guard costs no charge";
  constexpr size_t kLong = 3000000;
  fake::set_purge_uncommits(true);
  unsigned char* block = make(kLong);
  std::memset(block, 0xee, kLong);
  size_t before = fake::committed_bytes();
  release(block);
  EXPECT_LT(fake::committed_bytes() + kLong - kMiB, before);
  EXPECT_DEATH(hardened::free(block, Maker::c), "free already");
  fake::limit_committed(fake::committed_bytes());
  flush();
  EXPECT_EQ(make(kLong), nullptr);
  fake::limit_committed(SIZE_MAX);
  for (int round = 0; round < 40; ++round) {
    unsigned char* again = make(kLong);
    ASSERT_EQ(again, block);
    ASSERT_TRUE(is_zero(again, kLong));
    release(again);
    flush();
  }
}

TEST(Hardened, ResizesInPlaceWhereItMust) {
  using hardened::Resize;
  for (size_t size : kSizes) {
    unsigned char* block = make(size);
    fill(block, size, 7);
    for (size_t to : {size, size / 2, size / 16, size_t{0}}) {
      ASSERT_EQ(hardened::resize(block, to, Resize::stays_loose), block) << size << " to " << to;
      ASSERT_EQ(hardened::size_of(block, "test"), to);
      ASSERT_TRUE(intact(block, to, 7)) << size << " to " << to;
      ASSERT_TRUE(hardened::is_intact(block));
      if (to == 0) break;
    }
    release(block);
  }
}

TEST(Hardened, SaysWhatIsALiveBlock) {
  for (size_t size : {size_t{0}, size_t{24}, size_t{5000}, size_t{200000}}) {
    unsigned char* block = make(size);
    EXPECT_TRUE(hardened::is_live(block) && hardened::is_intact(block)) << size;
    if (size != 0) {
      EXPECT_FALSE(hardened::is_live(block + 16));
      EXPECT_EQ(hardened::start_of(block + size, "test"), block);
      block[size] ^= 1;
      EXPECT_TRUE(hardened::is_live(block) && !hardened::is_intact(block)) << size;
      block[size] ^= 1;
    }
    EXPECT_EQ(hardened::start_of(block, "test"), block);
    release(block);
    EXPECT_FALSE(hardened::is_live(block)) << size;
  }
}

TEST(Hardened, WhoFreesForSomebodyUnknownMayFreeAnything) {
  for (Maker maker : hardened::kMakers)
    hardened::free(hardened::allocate(nullptr, kBlockAlign, 100, maker), Maker::any);
}

TEST(Hardened, GuardsThatTheSystemRefusesAreDoneWithout) {
  fake::fail_all(fake::Call::guard, true);
  for (int round = 0; round < 20; ++round) {
    for (size_t size : kSizes) {
      unsigned char* block = make_zeroed(size);
      ASSERT_NE(block, nullptr);
      ASSERT_TRUE(is_zero(block, size)) << size;
      std::memset(block, 0xee, size);
      release(block);
    }
  }
}

// As in a sandbox that was closed since. What is given out can be used as a whole, and nobody asks for ever.
TEST(Hardened, WhereGuardsCannotBeRemovedNothingLies) {
  constexpr size_t kMany[] = {24, 3000, 30000, 40000, 100000, 300000, 700000, 2000000};
  std::vector<unsigned char*> blocks;
  for (size_t size : kMany)
    for (int count = 0; count < 20; ++count) blocks.push_back(make(size));
  for (unsigned char* block : blocks) release(block);
  flush();
  idle::trim();
  fake::fail_all(fake::Call::unguard, true);
  for (size_t size : kMany) {
    const size_t longer = size + size / 2;
    std::vector<unsigned char*> others;
    for (int count = 0; count < 40; ++count) {
      unsigned char* block = make_zeroed(size);
      ASSERT_NE(block, nullptr) << size;
      ASSERT_TRUE(is_zero(block, size)) << size;
      fill(block, size, 3);
      others.push_back(block);
      if (count % 2 == 0) continue;
      void* grown = hardened::resize(block, longer, hardened::Resize::moves);
      if (grown == nullptr) continue;
      ASSERT_TRUE(intact(grown, size, 3)) << size;
      std::memset(grown, 1, longer);
      others.back() = static_cast<unsigned char*>(grown);
    }
    for (unsigned char* block : others) release(block);
  }
  fake::fail_all(fake::Call::unguard, false);
  for (size_t size : kMany) release(std::memset(make(size), 1, size));
}

// What the pages of a block that grows are moved to may be where others' guards are still.
TEST(Hardened, ALongBlockMovesToWhereGuardsWere) {
  std::vector<unsigned char*> others;
  for (int count = 0; count < 100; ++count) others.push_back(make(200 * 1024));
  unsigned char* block = make(5 << 20);
  make(200 * 1024);  // behind it
  for (unsigned char* other : others) release(other);
  flush();
  idle::trim();
  fill(block, 5 << 20, 3);
  void* grown = hardened::resize(block, 8 << 20, hardened::Resize::moves);
  ASSERT_NE(grown, nullptr);
  ASSERT_NE(grown, block);
  EXPECT_TRUE(intact(grown, 5 << 20, 3));
  std::memset(grown, 1, 8 << 20);
  release(static_cast<unsigned char*>(grown));
}

// A process that ends: nothing is freed any more, and each block has a span of its own.
TEST(Hardened, ServesWhereNothingCanBeTrustedAnyMore) {
  std::vector<unsigned char*> blocks;
  for (size_t size : kSizes) blocks.push_back(make(size));
  g_inconsistent.store(true);
  for (int round = 0; round < 3; ++round) {
    for (size_t size : kSizes) {
      unsigned char* block = make(size);
      ASSERT_NE(block, nullptr) << size;
      std::memset(block, 0xee, size);
      ASSERT_EQ(hardened::size_of(block, "test"), size);
      release(block);
    }
  }
  for (unsigned char* block : blocks) release(block);
}

// Long blocks lie where slabs have ended, and the reverse.
TEST(Hardened, GuardsGoWhereTheMemoryIsUsedOtherwise) {
  std::minstd_rand random(5);
  std::vector<std::pair<unsigned char*, size_t>> blocks;
  for (int step = 0; step < 6000; ++step) {
    if (blocks.size() > 200 || (!blocks.empty() && random() % 2 == 0)) {
      size_t at = random() % blocks.size();
      auto [block, size] = blocks[at];
      ASSERT_TRUE(intact(block, size, static_cast<unsigned>(size)));
      release(block);
      blocks[at] = blocks.back();
      blocks.pop_back();
      continue;
    }
    size_t size = size_t{1} << random() % 21;
    unsigned char* block = random() % 2 == 0 && size > kMostZero ? make(size) : make_zeroed(size);
    if (size <= kMostZero) ASSERT_TRUE(is_zero(block, size)) << size;
    fill(block, size, static_cast<unsigned>(size));
    blocks.emplace_back(block, size);
  }
}

// Only a slab that ends at a guard ends early.
TEST(Hardened, SlabsAreFullUpToTheirGuardOrTheirEnd) {
  unsigned with_guard = 0, without = 0;
  for (size_t size : {24, 100, 1000, 3000, 4096, 7000, 30000}) {
    for (int count = 0; count < 500; ++count) {
      const Span* slab = slab_of(make(size));
      const size_t length = Units{slab->units}.bytes(), block = slab::properties(slab).size;
      const bool ends_early = bars::is_place(slab, slab->units);
      if (slab[slab->units - 1].guarded) ASSERT_TRUE(ends_early) << size;
      const size_t room = length - (ends_early ? kSlabGuard : kBlockAlign);
      ASSERT_EQ(slab::capacity(slab), room / block) << size;
      ++(ends_early ? with_guard : without);
    }
  }
  EXPECT_NE(with_guard, 0u);
  EXPECT_NE(without, 0u);
}

// By vectors of whatever length, once it is known which the processor has.
TEST(Hardened, LongBlocksAreClearedAndLookedAtWhole) {
  constexpr size_t kStep = 64, kRoom = kMaxSmall + 2 * kStep;
  alignas(kStep) static unsigned char memory[kRoom];
  for (bool is_known : {false, true}) {
    if (is_known) hardened::look_at_processor();
    for (size_t size = 1024; size <= kMaxSmall; size += kStep) {
      unsigned char* block = memory + kStep;
      std::memset(memory, 0xee, kRoom);
      hardened::clear_long(block, size);
      ASSERT_TRUE(is_zero(block, size)) << size;
      ASSERT_EQ(block[-1], 0xee) << size;
      ASSERT_EQ(block[size], 0xee) << size;
      ASSERT_TRUE(hardened::is_clear_long(block, size)) << size;
      for (size_t at = size % 61; at < size; at += 61) {
        block[at] = 1;
        ASSERT_FALSE(hardened::is_clear_long(block, size)) << at << " of " << size;
        block[at] = 0;
      }
      block[size - 1] = 1;
      ASSERT_FALSE(hardened::is_clear_long(block, size)) << size;
    }
  }
}

TEST(Hardened, HeapsThatEndLeaveNoGuards) {
  for (int round = 0; round < 50; ++round) {
    Heap* heap = shared::create();
    for (size_t size : kSizes) {
      unsigned char* block = make_zeroed(size, heap);
      ASSERT_TRUE(is_zero(block, size)) << size;
      std::memset(block, 0xee, size);
      if (round % 2 == 0) release(block);
    }
    destroy_heap(heap);
  }
}

// The first of them comes late, and their range is made of memory that guards were left in: one at its end.
TEST(Hardened, BlocksWithoutBytesMayBeginWhereOthersWere) {
  constexpr size_t kUnits = 5, kSize = kUnits * kUnitSize - kSlabGuard - 100;
  std::vector<void*> blocks;
  for (int count = 0; count < 400; ++count) blocks.push_back(std::memset(make(kSize), 1, kSize));
  for (void* block : blocks) release(block);
  flush();
  void* block = make(0);
  EXPECT_TRUE(hardened::is_empty_block(block));
  release(block);
}

TEST(Hardened, BlocksWithoutBytesAreManyAndApart) {
  std::set<void*> blocks;
  for (int count = 0; count < 70000; ++count) {
    void* block = make(0);
    ASSERT_NE(block, nullptr);
    ASSERT_TRUE(blocks.insert(block).second);
    ASSERT_EQ(hardened::size_of(block, "test"), 0u);
  }
  for (void* block : blocks) release(block);
  for (size_t alignment = kBlockAlign; alignment <= 4 * kUnitSize; alignment *= 2) {
    void* block = hardened::allocate(nullptr, alignment, 0, Maker::c);
    ASSERT_EQ(address_of(block) % alignment, 0u) << alignment;
    release(block);
  }
}

TEST(Hardened, BlocksWithoutBytesCannotBeTouched) {
  volatile unsigned char* block = make(0);
  ASSERT_TRUE(hardened::is_empty_block(const_cast<unsigned char*>(block)));
  EXPECT_DEATH(*block = 1, "");
  EXPECT_DEATH(static_cast<void>(*block), "");
  release(const_cast<unsigned char*>(block));
  EXPECT_DEATH(hardened::free(const_cast<unsigned char*>(block), Maker::c), "free of invalid pointer");
}

TEST(Hardened, WritesBehindTheEndAreSeen) {
  for (size_t size : {1, 8, 15, 24, 100, 3000, 32760, 40000, 300000}) {
    unsigned char* block = make(size);
    block[size] ^= 1;
    EXPECT_DEATH(release_as(block, Maker::c), "was written to behind its end") << size;
    block[size] ^= 1;
    release(block);
  }
}

// Until its memory is somebody's again.
void use_up(size_t size) {
  flush();
  for (int count = 0; count < 20000; ++count) make(size);
}

TEST(Hardened, WritesToFreeBlocksAreSeen) {
  for (size_t size : {24, 100, 1000, 3000, 30000}) {
    use(size);
    unsigned char* block = make(size);
    release(block);
    for (size_t at : {size_t{0}, size / 2, size - 1}) {
      block[at] = 1;
      EXPECT_DEATH(use_up(size), "write to a free block") << size << " at " << at;
      block[at] = 0;
    }
  }
  // The line that the heap is about to write to is looked at before.
  for (size_t size : {24, 100, 1000}) {
    unsigned char* block = make(size);
    release(block);
    block[20] = 1;
    EXPECT_DEATH(flush(), "write to a free block") << size;
    block[20] = 0;
  }
  // Where its link was, in the hands of the heap.
  use(24);
  unsigned char* block = make(24);
  release(block);
  flush();
  std::memset(block, 'A', sizeof(void*));
  EXPECT_DEATH(for (int count = 0; count < 100000; ++count) make(24), "write to a free block");
}

TEST(Hardened, EndsOfOtherMakersAreSeenOrTolerated) {
  start();  // without secrets all ends are the same
  for (size_t size : {24, 3000, 40000}) {
    unsigned char* block = make(size);
    EXPECT_DEATH(
        {
          hardened::g_strict.store(true);
          release_as(block, Maker::single);
        },
        "made by malloc, was given to delete");
    EXPECT_EQ(release_as(block, Maker::single), Freed::done);
    block = static_cast<unsigned char*>(hardened::allocate(nullptr, kBlockAlign, size, Maker::single));
    EXPECT_DEATH(release_as(block, Maker::array), "made by new, was given to delete\\[\\]");
    EXPECT_DEATH(release_as(block, Maker::single, size + 1), "was freed as one of");
    EXPECT_EQ(release_as(block, Maker::single, size), Freed::done);
  }
}

std::string said() {
  std::string text = fake::errors();
  fake::clear_errors();
  return text;
}

TEST(Hardened, GoesOnAfterMisuseIfAskedTo) {
  hardened::g_goes_on.store(true);
  use(24);
  for (size_t size : {24, 3000, 40000}) {
    unsigned char* block = make(size);
    block[size] ^= 1;
    release(block);
    EXPECT_NE(said().find("was written to behind its end"), std::string::npos);
    release(block);
    EXPECT_NE(said().find("free of a block that is free already"), std::string::npos);
    block = make(size);
    release(block + 16);
    EXPECT_NE(said().find("free of invalid pointer"), std::string::npos);
    EXPECT_EQ(release_as(block, Maker::c, size - 1), Freed::done);
    EXPECT_NE(said().find("was freed as one of"), std::string::npos);
    // Written to while it is free: nobody has it again.
    flush();
    block = make(size);
    release(block);
    block[20] = 1;
    flush();
    EXPECT_NE(said().find("write to a free block"), std::string::npos);
    for (int count = 0; count < 3000; ++count) ASSERT_NE(make(size), block);
    EXPECT_EQ(said(), "");
  }
  unsigned char* block = make(24);
  release(block);
  flush();
  block[20] = 1;
  for (int count = 0; count < 3000; ++count) ASSERT_NE(make(24), block);
  EXPECT_NE(said().find("write to a free block"), std::string::npos);
}

}  // namespace
}  // namespace rh
