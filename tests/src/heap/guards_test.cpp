// Blocks on guarded pages, and the watching that they come by.
#include "heap/guards.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "heap/idle.h"
#include "heap/watch.h"
#include "support/heaps.h"

namespace rh {
namespace {

using Bytes = unsigned char*;

bool is_guarded(const void* block) { return find_block(block).is_guarded(); }

// Every allocation that fits a place gets one, from here on to the end of the scope.
struct AllGuarded {
  AllGuarded() {
    deallocate(allocate(1));  // the thread has a heap
    guards::set_every(1);
  }
  ~AllGuarded() { guards::set_every(0); }
};

size_t to_end_of_place(const void* block) { return guards::kMostSize - address_of(block) % kUnitSize; }

// One whose last byte is the last before a guard, or one that begins behind a guard.
Bytes make(size_t size, bool at_end = true) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    Bytes block = static_cast<Bytes>(allocate(size));
    if (at_end ? to_end_of_place(block) == size : address_of(block) % kUnitSize == 0) return block;
    deallocate(block);
  }
  return nullptr;
}

bool has(const std::string& text) { return std::string(fake::errors()).find(text) != std::string::npos; }

bool says_at_fault(const void* at, platform::Access access, const std::string& text) {
  guards::look_at_faults();
  fake::clear_errors();
  return fake::fault(address_of(at), access) && has(text);
}

// ---- watching -----------------------------------------------------------------------------------

TEST(Watch, TheFastPathsKnowNoSizeWhileSomebodyWatches) {
  auto fast_paths_serve = [](size_t size, auto fast) {
    for (int count = 0; count < 1000; ++count, allocate(size))
      if (fast(size) != nullptr) return true;
    return false;
  };
  auto table = [](size_t size) { return allocate_fast(size); };
  auto arithmetic = [](size_t size) { return allocate_medium_fast(size); };
  EXPECT_TRUE(fast_paths_serve(100, table));
  EXPECT_TRUE(fast_paths_serve(1025, arithmetic));
  watch::begin(watch::Watcher::guards);
  EXPECT_TRUE(watch::is_on());
  for (size_t size = 0; size <= kMaxSmall; ++size) {
    ASSERT_EQ(allocate_fast(size), nullptr) << size;
    ASSERT_EQ(allocate_medium_fast(size), nullptr) << size;
  }
  EXPECT_EQ(allocate_aligned_fast(64, 64), nullptr);
  void* block = allocate(100);
  EXPECT_TRUE(block != nullptr && find_block(block).is_small());
  watch::end(watch::Watcher::guards);
  EXPECT_FALSE(watch::is_on());
  EXPECT_TRUE(fast_paths_serve(100, table));
  EXPECT_TRUE(fast_paths_serve(1025, arithmetic));
  EXPECT_EQ(allocate_fast(1025), nullptr);
}

size_t taken_from_fast_path(size_t size, std::set<void*>& blocks) {
  size_t count = 0;
  while (void* block = allocate_fast(size)) {
    EXPECT_TRUE(blocks.insert(block).second);
    EXPECT_GE(find_block(block).usable_size(), size);
    ++count;
  }
  return count;
}

TEST(Watch, ThoseThatWillNotBeChosenArePassedToTheFastPath) {
  constexpr size_t kMost = 4096 / 64;
  std::set<void*> blocks;
  for (size_t count = 0; count < 2 * kMost; ++count) blocks.insert(allocate(64));
  for (void* block : blocks) deallocate(block);
  blocks.clear();
  guards::set_every(1000000);
  EXPECT_EQ(taken_from_fast_path(64, blocks), 0u);
  blocks.insert(allocate(64));
  EXPECT_EQ(taken_from_fast_path(64, blocks), 2 * kMost - 2) << "two pages but for their last block";
  for (void* block : blocks) deallocate(block);
  blocks.clear();
  EXPECT_EQ(taken_from_fast_path(64, blocks), 0u) << "a free that is counted passes no allocation";
  for (void* block : blocks) deallocate(block);
  blocks = {allocate_zeroed(64), allocate_aligned(64, 64)};
  EXPECT_NE(find_block(*blocks.begin()).span, nullptr);
  deallocate(allocate_aligned_fast(64, 64));
  guards::set_every(0);
  for (void* block : blocks) deallocate(block);
}

// How far it is to the next chosen one of a class, when nothing is passed any more.
int64_t distance(size_t size) {
  Heap* heap = own_heap();
  LockGuard guard(heap->lock, heap->token.load());
  watch::take_back(heap, size_class::of(size));
  return heap->watched.next[size_class::of(size)].guarded;
}

// As when a helper takes the current slab away.
void stop_serving_passed(size_t size) {
  Heap* heap = own_heap();
  LockGuard guard(heap->lock, heap->token.load());
  watch::stop_serving_passed(heap, heap->current[size_class::of(size)]);
}

// What was passed had an owner before, like any other block.
TEST(Watch, ZeroedBlocksAreZeroOfThosePassedToo) {
  auto use = [] {
    std::vector<void*> blocks;
    for (int count = 0; count < 300; ++count) blocks.push_back(allocate(64));
    for (void* block : blocks) std::memset(block, 0xee, 64);
    for (void* block : blocks) deallocate(block);
  };
  use();
  guards::set_every(1000000);
  use();
  for (int count = 0; count < 600; ++count) ASSERT_TRUE(contract::all_zero(allocate_zeroed(64), 64)) << count;
  guards::set_every(0);
}

TEST(Watch, EachAllocationIsCountedOnceHoweverItIsPassed) {
  constexpr uint64_t kNever = uint64_t{1} << 50;
  constexpr size_t kSize = 64;
  std::vector<void*> blocks;
  for (size_t count = 0; count < 4000; ++count) blocks.push_back(allocate(kSize));  // the class is used often
  guards::set_every(kNever);
  deallocate(allocate(kSize));
  for (size_t at_a_time : {1, 2, 3, 100, 2500}) {
    int64_t before = distance(kSize), count = 0;
    unsigned fast = 0;
    while (count < 20'000) {
      for (size_t index = 0; index < at_a_time; ++index, ++count) {
        void* block = allocate_fast(kSize);
        fast += block != nullptr;
        blocks.push_back(block != nullptr ? block : allocate(kSize));
      }
      for (size_t index = 0; index < at_a_time; ++index) {
        deallocate(blocks.back());
        blocks.pop_back();
      }
      if (count % 7000 < static_cast<int64_t>(at_a_time))
        EXPECT_EQ(before - distance(kSize), count) << at_a_time << " at a time";
      if (count % 3000 < static_cast<int64_t>(at_a_time)) stop_serving_passed(kSize);
    }
    EXPECT_EQ(before - distance(kSize), count) << at_a_time << " at a time";
    EXPECT_GT(fast, count * 9 / 10) << at_a_time << " at a time";
  }
  guards::set_every(0);
  for (void* block : blocks) deallocate(block);
}

TEST(Watch, BeginsInAHandlerThatInterruptedAnAllocation) {
  deallocate(allocate(64));
  Heap* heap = own_heap();
  LockGuard guard(heap->lock, heap->token.load());
  watch::begin(watch::Watcher::guards);
  EXPECT_TRUE(watch::is_on());
  watch::end(watch::Watcher::guards);
  EXPECT_FALSE(watch::is_on());
}

TEST(Watch, WhatWasPassedIsLookedAtAfterAllWhenMoreAreChosen) {
  deallocate(allocate(64));
  for (int round = 0; round < 3; ++round) {
    guards::set_every(1000000);
    for (int count = 0; count < 100; ++count) deallocate(allocate(64));
    AllGuarded all;
    void* block = allocate(64);
    EXPECT_TRUE(is_guarded(block));
    deallocate(block);
  }
}

TEST(Watch, WhatWasPassedGoesBackWithTheRest) {
  deallocate(allocate(64));
  idle::reclaim();
  const size_t before = g_arena.figures().in_use;
  for (bool ends : {false, true}) {
    std::set<void*> blocks;
    guards::set_every(1000000);
    for (int count = 0; count < 5000; ++count) blocks.insert(allocate(16 + count % 50 * 16));
    if (ends) guards::set_every(0);
    for (int count = 0; count < 50; ++count) blocks.insert(allocate(16 + count % 50 * 16));
    for (void* block : blocks) deallocate(block);
    idle::reclaim();
    EXPECT_EQ(g_arena.figures().in_use, before) << ends;
    guards::set_every(0);
  }
}

TEST(Watch, OneInSoManyIsChosen) {
  deallocate(allocate(1));
  guards::set_every(50);
  size_t chosen = 0;
  for (int count = 0; count < 100000; ++count) {
    void* block = allocate(64);
    chosen += is_guarded(block);
    deallocate(block);
  }
  EXPECT_NEAR(static_cast<double>(chosen), 2000, 100);
  guards::set_every(1000000);
  guards::set_every(10);
  for (int count = 0; count < 300 && chosen < 1000000; ++count) chosen = is_guarded(allocate(64)) ? 1000000 : chosen;
  EXPECT_EQ(chosen, 1000000u) << "waits for what it had to wait for at the rate before";
}

TEST(Watch, OfHeapsOfTheProgramsOneInSoManyIsChosenToo) {
  deallocate(allocate(1));
  guards::set_every(50);
  Heap* heaps[] = {shared::create(), create_bound_heap()};
  size_t chosen[2] = {};
  for (size_t count = 0; count < 100000; ++count) {
    void* block = allocate_in(heaps[count % 2], kBlockAlign, count % 3 == 0 ? 64 : 5000, false);
    chosen[count % 2] += is_guarded(block);
    deallocate(block);
  }
  EXPECT_NEAR(static_cast<double>(chosen[0]), 1000, 100);
  EXPECT_NEAR(static_cast<double>(chosen[1]), 1000, 100);
  guards::set_every(0);
  for (Heap* heap : heaps) {
    for (size_t count = 0; count < 1000; ++count) ASSERT_FALSE(is_guarded(allocate_in(heap, kBlockAlign, 64, false)));
    destroy_heap(heap);
  }
}

// ---- blocks -------------------------------------------------------------------------------------

// Windows' C runtimes say that a block without bytes has one.
constexpr size_t kLeastGuarded = kExactSizes ? 1 : 0;

TEST(Guards, EverySizeAndAlignmentIsMetAndReadsAsZero) {
  AllGuarded all;
  for (size_t alignment = 1; alignment <= kUnitSize; alignment *= 2) {
    for (size_t size :
         {kLeastGuarded, size_t{1}, size_t{15}, size_t{16}, size_t{4095}, size_t{4097}, guards::kMostSize}) {
      for (int count = 0; count < 8; ++count) {
        Bytes block = static_cast<Bytes>(allocate_aligned(alignment, size));
        ASSERT_TRUE(is_guarded(block)) << alignment << ' ' << size;
        ASSERT_EQ(address_of(block) % (alignment < kBlockAlign ? kBlockAlign : alignment), 0u);
        ASSERT_EQ(usable_size(block, "test"), size);
        ASSERT_TRUE(all_zero(block, size));
        if (size != 0) std::memset(block, 0xee, size);
        ASSERT_EQ(deallocate(block), Freed::done);
      }
    }
  }
  EXPECT_FALSE(is_guarded(allocate(guards::kMostSize + 1)));
  void* empty = allocate(0);
  EXPECT_EQ(is_guarded(empty), kLeastGuarded == 0);
  deallocate(empty);
  EXPECT_FALSE(is_guarded(allocate_aligned(2 * kUnitSize, 16)));
  EXPECT_EQ(figures().guards.live, 0u);
}

TEST(Guards, BlocksLieAtBothEndsOfTheirPlaces) {
  AllGuarded all;
  ASSERT_NE(make(48), nullptr);
  ASSERT_NE(make(48, false), nullptr);
  EXPECT_EQ(figures().guards.live, 2u);
  EXPECT_EQ(figures().guards.bytes, 96u);
}

TEST(Guards, AnyAddressOfABlockLeadsToIt) {
  AllGuarded all;
  Bytes block = make(100, false);
  EXPECT_EQ(block_start(block + 99, "test"), block);
  EXPECT_TRUE(owns(block + 99));
  EXPECT_TRUE(is_live(block));
  EXPECT_FALSE(is_live(block + 16));
  EXPECT_EQ(good_size(100), 100u);
  EXPECT_EQ(resize_in_place(find_block(block), 100), nullptr);
  deallocate(block);
  EXPECT_FALSE(owns(block + 99));
  EXPECT_FALSE(is_live(block));
}

TEST(Guards, WhereAllPlacesAreTakenBlocksAreOrdinary) {
  AllGuarded all;
  std::vector<void*> blocks;
  for (size_t count = 0; count < guards::kPlaces; ++count) blocks.push_back(allocate(40));
  for (void* block : blocks) ASSERT_TRUE(is_guarded(block));
  EXPECT_FALSE(is_guarded(allocate(40)));
  deallocate(blocks[7]);
  EXPECT_EQ(g_realm.span_of(allocate(40)), g_realm.span_of(blocks[7]));
}

TEST(Guards, APlaceThatWasFreedIsTheLastToBeUsedAgain) {
  AllGuarded all;
  void* first = allocate(40);
  deallocate(first);
  for (size_t count = 1; count < guards::kPlaces; ++count) {
    void* block = allocate(40);
    ASSERT_NE(g_realm.span_of(block), g_realm.span_of(first));
    deallocate(block);
  }
  EXPECT_EQ(g_realm.span_of(allocate(40)), g_realm.span_of(first));
}

TEST(Guards, ABlockThatMustBeFreedByAnotherThreadIs) {
  AllGuarded all;
  void* block = allocate(40);
  Actor other;
  other([&] { EXPECT_EQ(deallocate(block), Freed::done); });
  EXPECT_FALSE(is_live(block));
}

// ---- of heaps of the program's ------------------------------------------------------------------

// The parameter: whether the heap is bound to a thread.
class GuardsOfHeaps : public testing::TestWithParam<bool> {
 protected:
  ~GuardsOfHeaps() override { destroy_heap(heap_); }

  void* take(size_t size) { return allocate_in(heap_, kBlockAlign, size, false); }

  AllGuarded all_;
  static Heap* make() { return GetParam() ? create_bound_heap() : shared::create(); }

  Heap* heap_ = make();
};
INSTANTIATE_TEST_SUITE_P(Bound, GuardsOfHeaps, testing::Bool());

TEST_P(GuardsOfHeaps, BlocksAreItsOwn) {
  Bytes block = static_cast<Bytes>(allocate_in(heap_, 64, 100, true));
  ASSERT_TRUE(is_guarded(block));
  EXPECT_TRUE(all_zero(block, 100));
  EXPECT_EQ(address_of(block) % 64, 0u);
  EXPECT_EQ(shared::heap_of(find_block(block).span), heap_);
  EXPECT_EQ(shared::heap_beside(find_block(block).span), heap_);
  EXPECT_EQ(shared::figures(heap_).blocks, 1u);
  EXPECT_EQ(shared::figures(heap_).in_use, 100u);
  EXPECT_EQ(heap_->account.held(), 0u);
  void* of_thread = allocate(100);
  ASSERT_TRUE(is_guarded(of_thread));
  EXPECT_EQ(shared::heap_of(find_block(of_thread).span), nullptr);
  Actor other;
  other([&] { EXPECT_EQ(deallocate(block), Freed::done); });
  EXPECT_FALSE(is_live(block));
  EXPECT_EQ(shared::figures(heap_).blocks, 0u);
  EXPECT_TRUE(is_live(of_thread));
}

TEST_P(GuardsOfHeaps, BlocksEndWithIt) {
  Heap* other = shared::create();
  std::vector<void*> blocks, others;
  auto fill = [&] {
    for (size_t count = 0; count < guards::kPlaces / 8; ++count) {
      blocks.push_back(take(40));
      others.push_back(allocate_in(other, kBlockAlign, 40, false));
      others.push_back(allocate(40));
    }
    for (void* block : blocks) ASSERT_TRUE(is_guarded(block));
  };
  fill();
  reset_heap(heap_);
  for (void* block : blocks) ASSERT_FALSE(is_live(block));
  EXPECT_EQ(figures().guards.live, others.size());
  EXPECT_TRUE(says_at_fault(blocks[0], platform::Access::write, "use after free: write to"));
  fill();
  destroy_heap(heap_);
  heap_ = make();
  for (void* block : blocks) ASSERT_FALSE(is_live(block));
  for (void* block : others) ASSERT_TRUE(is_live(block));
  EXPECT_EQ(shared::figures(heap_).blocks, 0u);
  for (void* block : others) deallocate(block);
  destroy_heap(other);
  EXPECT_EQ(figures().guards.live, 0u);
}

TEST_P(GuardsOfHeaps, BlocksAreWalked) {
  std::set<void*> blocks;
  for (size_t count = 0; count < guards::kPlaces + 20; ++count) blocks.insert(take(40));
  blocks.insert(take(50000));
  deallocate(*blocks.begin());
  blocks.erase(blocks.begin());
  void* freed = *blocks.rbegin();
  blocks.erase(freed);
  deallocate(freed);
  allocate(40);
  std::set<void*> walked;
  void* last = nullptr;
  while (void* next = shared::next_block(heap_, last)) {
    ASSERT_GT(next, last);
    ASSERT_TRUE(walked.insert(last = next).second);
  }
  if (kExactSizes) EXPECT_EQ(walked, blocks);
  for (void* block : blocks) EXPECT_EQ(walked.count(block), 1u);
}

TEST_P(GuardsOfHeaps, ALimitDoesNotCountThem) {
  heap_->account.set_limit(4 * kUnitSize);
  for (size_t count = 0; count < guards::kPlaces; ++count) ASSERT_TRUE(is_guarded(take(40)));
  guards::set_every(0);
  EXPECT_NE(take(40), nullptr);
}

// ---- what is missing ----------------------------------------------------------------------------

TEST(Guards, WithoutPagesBlocksAreOrdinary) {
  AllGuarded all;
  fake::fail_all(fake::Call::guard, true);
  EXPECT_FALSE(is_guarded(allocate(40))) << "no pool";
  fake::fail_all(fake::Call::guard, false);
  void* block = allocate(40);
  EXPECT_TRUE(is_guarded(block));
  fake::fail_all(fake::Call::guard, true);
  EXPECT_EQ(deallocate(block), Freed::done);
  fake::fail_all(fake::Call::guard, false);
  std::set<const Span*> places;
  for (size_t count = 1; count < guards::kPlaces; ++count) places.insert(g_realm.span_of(allocate(40)));
  EXPECT_EQ(places.count(g_realm.span_of(block)), 0u) << "pages that could not be taken back are used again";
  EXPECT_EQ(places.size(), guards::kPlaces - 1);
}

TEST(Guards, WithoutMemoryThereAreNone) {
  deallocate(allocate(1));
  fake::limit_committed(fake::committed_bytes());
  AllGuarded all;
  while (void* block = allocate(200)) ASSERT_FALSE(is_guarded(block));
}

// ---- misuse -------------------------------------------------------------------------------------

TEST(Guards, TouchingWhatIsNotTheBlocksEndsTheProgram) {
  AllGuarded all;
  volatile Bytes block = make(48);
  EXPECT_DEATH(block[48] = 1, "");
  volatile Bytes first = make(48, false);
  EXPECT_DEATH(static_cast<void>(*static_cast<volatile unsigned char*>(first - 1)), "");
  deallocate(block);
  EXPECT_DEATH(block[0] = 1, "");
  if (kLeastGuarded != 0) return;
  volatile Bytes empty = static_cast<Bytes>(allocate(0));
  EXPECT_DEATH(empty[0] = 1, "");
}

TEST(Guards, AFaultIsExplained) {
  AllGuarded all;
  using platform::Access;
  Bytes block = make(48);
  EXPECT_TRUE(says_at_fault(block + 48, Access::write, "reheap: overflow: write to 0x"));
  EXPECT_TRUE(has(", 0 bytes behind the end of the block 0x") && has(" of 48 bytes; made by thread 1"))
      << fake::errors();
  EXPECT_FALSE(has("freed"));
  Bytes first = make(48, false);
  EXPECT_TRUE(says_at_fault(first - 8, Access::read, "reheap: underflow: read of 0x"));
  EXPECT_TRUE(has(", 8 bytes before the start of the block 0x")) << fake::errors();
  deallocate(block);
  EXPECT_TRUE(says_at_fault(block + 3, Access::unknown, "reheap: use after free: access to 0x"));
  EXPECT_TRUE(has(", byte 3 of the block 0x") && has("; freed by thread 1")) << fake::errors();
  deallocate(first);
  EXPECT_TRUE(says_at_fault(first + 60, Access::read, "reheap: invalid access: read of 0x"));
  EXPECT_TRUE(has(", 12 bytes behind the end of the block 0x"));
  const Span* pool = g_realm.span_of(block);
  while ((pool - 1)->kind.load() == SpanKind::guarded) --pool;
  EXPECT_TRUE(says_at_fault(reinterpret_cast<void*>(g_realm.address(pool)), Access::read, ", between blocks"));
  EXPECT_FALSE(says_at_fault(&all, Access::read, "reheap")) << "somebody else's memory";
  EXPECT_FALSE(says_at_fault(allocate(20000), Access::read, "reheap")) << "a block without guards";
}

TEST(Guards, AFaultIsExplainedWhereTheyBeganLater) {
  guards::look_at_faults();
  EXPECT_FALSE(fake::fault(0, platform::Access::read));
  AllGuarded guarded;
  EXPECT_TRUE(fake::fault(address_of(make(48)) + 48, platform::Access::write) && has("reheap: overflow: write to 0x"));
}

TEST(Guards, FreesOfWhatIsNoBlockEndTheProgram) {
  AllGuarded all;
  Bytes block = make(48, false);
  EXPECT_DEATH(deallocate(block + 16),
               "free of invalid pointer 0x.*: not the start of a live block, but byte 16 of the "
               "block 0x.* of 48 bytes; made by thread 1\n");
  EXPECT_DEATH(known_block(block + 16, "realloc"), "realloc of invalid pointer 0x");
  EXPECT_DEATH(deallocate(block - 16), "free of invalid pointer 0x");
  deallocate(block);
  EXPECT_DEATH(deallocate(block), "free of what is free already: the block 0x.* of 48 bytes; made by thread 1; "
                                  "freed by thread 1\n");
  EXPECT_DEATH(known_block(block, "realloc"), "realloc of what is free already: the block 0x");
  EXPECT_FALSE(deallocate_live(block));
}

TEST(Guards, WhatIsWrittenBesideABlockIsSeenWhenItIsFreed) {
  AllGuarded all;
  Bytes block = make(48, false);
  for (size_t at : {size_t{48}, size_t{4095}}) {
    block[at] ^= 1;
    EXPECT_DEATH(deallocate(block),
                 "the block 0x.* of 48 bytes was written to behind its end or before its start, seen "
                 "at free; made by thread 1\n");
    block[at] ^= 1;
  }
  deallocate(block);
  Bytes last = nullptr;
  while (last == nullptr || to_end_of_place(last) > 48) last = static_cast<Bytes>(allocate(40));
  last[40] ^= 1;
  EXPECT_DEATH(deallocate(last), "was written to");
  last[40] ^= 1;
  last[-1] ^= 1;
  EXPECT_DEATH(deallocate(last), "was written to");
}

}  // namespace
}  // namespace rh
