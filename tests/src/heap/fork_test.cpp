// Forks that could not hold every lock: what the child does without.
#include "heap/fork.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/sanitizers.h"
#include "heap/idle.h"
#include "heap/registry.h"
#include "heap/shared.h"
#include "heap/tags.h"
#include "support/child.h"
#include "support/heaps.h"

namespace rh {
namespace {

constexpr size_t kLarge = 300 * 1024;

// ThreadSanitizer does not allow creating a thread in the child of a multithreaded process.
constexpr bool kThreadsInChildren = kForks && !RH_THREAD_SANITIZER;

std::vector<void*> filled_blocks(size_t size, unsigned count) {
  std::vector<void*> blocks;
  for (unsigned index = 0; index < count; ++index) {
    blocks.push_back(allocate(size));
    fill(blocks.back(), size, index);
  }
  return blocks;
}

void check_and_free(const std::vector<void*>& blocks, size_t size) {
  for (unsigned index = 0; index < blocks.size(); ++index) {
    EXPECT_TRUE(intact(blocks[index], size, index)) << size << " bytes, number " << index;
    deallocate(blocks[index]);
  }
}

void use_heap() {
  for (size_t size : {16u, 100u, 2000u, 20000u}) check_and_free(filled_blocks(size, 600), size);
  check_and_free(filled_blocks(kLarge, 20), kLarge);
  for (size_t size : {500u, 300000u, 5000000u}) {
    void* block = allocate_zeroed(size);
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(all_zero(block, size));
    std::memset(block, 0xdb, size);
    deallocate(block);
  }
}

// Another thread with its own blocks; what it does next waits for a signal from the test.
class Other {
 public:
  explicit Other(void (*next)()) : thread_([this, next] { run(next); }) {
    while (!ready_) std::this_thread::yield();
  }
  ~Other() {
    begin();
    thread_.join();
    check_and_free(small, 64);
    check_and_free(large, kLarge);
  }
  void begin() { begun_ = true; }
  bool ended() const { return ended_; }

  std::vector<void*> small, large;

 private:
  void run(void (*next)()) {
    small = filled_blocks(64, 3000);
    large = filled_blocks(kLarge, 8);
    for (int index = 0; index < 500; ++index) deallocate(allocate(64));
    ready_ = true;
    while (!begun_) std::this_thread::yield();
    next();
    ended_ = true;
  }

  std::atomic<bool> ready_{false}, begun_{false}, ended_{false};
  std::thread thread_;
};

// The clock advances by itself while one of these lives.
class Ticking {
 public:
  Ticking()
      : thread_([this] {
          for (; !stop_; std::this_thread::yield()) fake::advance(1);
        }) {}
  ~Ticking() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

void grow() {
  for (int index = 0; index < 300; ++index) allocate(kLarge);
}

TEST(Fork, WhatWasTakenFromItIsGivenUpInTheChild) {
  if (!kThreadsInChildren) GTEST_SKIP() << "there is no fork here, or none with threads";
  std::vector<void*> own = filled_blocks(64, 2000), own_large = filled_blocks(kLarge, 5);
  Other other(grow);
  fork::before();
  other.begin();
  {
    Ticking ticking;
    while (!other.ended()) std::this_thread::yield();
  }
  size_t held = figures().arena.in_use;
  Ending ending = in_child([&] {
    check_and_free(own, 64);
    check_and_free(own_large, kLarge);
    use_heap();
    std::thread(use_heap).join();
    // Its memory is ownerless here, and unchanged.
    check_and_free(other.small, 64);
    check_and_free(other.large, kLarge);
    size_t before = figures().arena.in_use;
    for (int round = 0; round < 20; ++round) use_heap();
    EXPECT_LE(figures().arena.in_use, before + (size_t{1} << 20));
    EXPECT_LE(before, held + (size_t{64} << 20));
    return 0;
  });
  EXPECT_TRUE(ending.well(0)) << ending.status;
  fork::after_in_parent();
  check_and_free(own, 64);
  check_and_free(own_large, kLarge);
  use_heap();
}

#ifndef _WIN32
Other* freeing = nullptr;
int calls_left = 0;
pid_t forked = -1;

// As when a signal handler forks in there, and another thread takes the locks from the fork.
void fork_at_call() {
  if (--calls_left != 0) return;
  fork::before();
  freeing->begin();
  {
    Ticking ticking;
    while (!freeing->ended()) std::this_thread::yield();
  }
  forked = ::fork();
  if (forked != 0) fork::after_in_parent();
}

constexpr int kFewerCalls = 3;

int grow_and_fork_at(int call) {
  std::vector<void*> own = filled_blocks(64, 2000);
  Other other([] {
    for (void* block : freeing->large) deallocate(block);
    freeing->large.clear();
  });
  freeing = &other;
  calls_left = call;
  fake::on_memory_call(fork_at_call);
  void* much = allocate(64 * kMiB);
  fake::on_memory_call(nullptr);
  if (forked == -1) return kFewerCalls;
  EXPECT_NE(much, nullptr);
  fill(much, 64 * kMiB, 1);
  EXPECT_TRUE(intact(much, 64 * kMiB, 1));
  check_and_free(own, 64);
  use_heap();
  if (forked == 0) _exit(testing::Test::HasFailure() ? 1 : 0);
  int status = 0;
  EXPECT_EQ(waitpid(forked, &status, 0), forked);
  EXPECT_EQ(status, 0);
  return 0;
}

// Whichever call to the OS it is in.
TEST(Fork, WhoMakesMemoryUsableGoesOnWithItInTheChild) {
  if (!kThreadsInChildren) GTEST_SKIP() << "there is no fork here, or none with threads";
  int call = 1;
  Ending ending = {0};
  for (; ending.well(0); ++call) ending = in_child([call] { return grow_and_fork_at(call); });
  EXPECT_TRUE(ending.well(kFewerCalls)) << "call " << call - 1 << ": " << ending.status;
  EXPECT_GT(call, 3);
}
#endif

// As when a signal handler interrupts a thread inside the arena, while another thread waits for it and holds its own
// heap's lock.
TEST(Fork, DoesNotWaitForWhoWaitsForItsOwnThread) {
  if (!kThreadsInChildren) GTEST_SKIP() << "there is no fork here, or none with threads";
  std::vector<void*> own = filled_blocks(64, 2000);
  Other other([] { filled_blocks(64, 30000); });
  g_arena.lock().acquire();
  other.begin();
  Ticking ticking;
  for (int pause = 0; pause < 1000; ++pause) std::this_thread::yield();
  Ending ending = in_child([&] {
    g_arena.lock().release();
    check_and_free(own, 64);
    use_heap();
    check_and_free(other.small, 64);
    check_and_free(other.large, kLarge);
    std::thread(use_heap).join();
    return 0;
  });
  EXPECT_TRUE(ending.well(0)) << ending.status;
  g_arena.lock().release();
  check_and_free(own, 64);
  while (!other.ended()) std::this_thread::yield();
}

// As when another trims a thousand heaps. A child that missed the list of heaps could free nothing any more.
TEST(Fork, WaitsForWhoGoesThroughAllHeaps) {
  if (!kThreadsInChildren) GTEST_SKIP() << "there is no fork here, or none with threads";
  std::vector<void*> own = filled_blocks(64, 2000);
  std::atomic<bool> held{false};
  std::thread other([&held] {
    LockGuard guard(registry::lock());
    held = true;
    for (int step = 0; step < 700; ++step, std::this_thread::yield()) fake::advance(1);
  });
  while (!held) std::this_thread::yield();
  Ending ending = in_child([&own] {
    EXPECT_FALSE(inconsistent());
    check_and_free(own, 64);
    use_heap();
    return 0;
  });
  EXPECT_TRUE(ending.well(0)) << ending.status;
  other.join();
  check_and_free(own, 64);
}

// Each of its first-class heaps has pages that can go back to the OS, which takes twenty milliseconds: of all together
// more than twice as long as a fork waits.
class ManyHeaps {
 public:
  ManyHeaps() {
    for (Heap*& heap : heaps_) {
      heap = shared::create();
      std::vector<void*> blocks;
      for (int count = 0; count < 2000; ++count) blocks.push_back(allocate_in(heap, kBlockAlign, 64, false));
      for (size_t at = 0; at < blocks.size(); ++at)
        if (at % 500 != 0) deallocate(blocks[at]);
    }
  }
  ~ManyHeaps() {
    for (Heap* heap : heaps_) destroy_heap(heap);
  }

 private:
  Heap* heaps_[120];
};

TEST(Fork, WhoTrimsManyHeapsMakesWay) {
  if (!kThreadsInChildren) GTEST_SKIP() << "there is no fork here, or none with threads";
  ManyHeaps heaps;
  static std::atomic<int> steps{0};
  fake::on_memory_call([] {
    fake::advance(20);
    ++steps;
    std::this_thread::yield();
  });
  std::thread other([] { idle::trim(); });
  while (steps < 5) std::this_thread::yield();
  Ending ending = in_child([] {
    fake::on_memory_call(nullptr);
    EXPECT_FALSE(inconsistent());
    use_heap();
    return 0;
  });
  EXPECT_TRUE(ending.well(0)) << ending.status;
  other.join();
  fake::on_memory_call(nullptr);
}

// A thread that takes from a heap bound to it, and frees, all the time; some of its blocks stay.
class BoundAndBusy {
 public:
  BoundAndBusy() : thread_([this] { run(); }) {
    while (heap_ == nullptr) std::this_thread::yield();
  }
  ~BoundAndBusy() {
    stop_ = true;
    thread_.join();
  }
  Heap* heap() const { return heap_; }
  const std::vector<void*>& kept() const { return kept_; }

 private:
  void run() {
    Heap* heap = create_bound_heap();
    for (unsigned index = 0; index < 1000; ++index) {
      kept_.push_back(allocate_in(heap, kBlockAlign, 64, false));
      fill(kept_.back(), 64, index);
    }
    heap_ = heap;
    std::vector<void*> blocks(500);
    for (size_t at = 0; !stop_; at = (at + 1) % blocks.size()) {
      deallocate(blocks[at]);
      blocks[at] = allocate_in(heap, kBlockAlign, at % 5 == 0 ? 3000 : 64, false);
    }
  }

  std::vector<void*> kept_;
  std::atomic<Heap*> heap_{nullptr};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

void use_bound_heap(Heap* heap) {
  std::vector<void*> blocks;
  for (unsigned index = 0; index < 3000; ++index) {
    blocks.push_back(allocate_in(heap, kBlockAlign, 64, false));
    ASSERT_NE(blocks.back(), nullptr);
    fill(blocks.back(), 64, index);
  }
  check_and_free(blocks, 64);
}

// What another thread held when this one forked is as if it were new, but the same heap to those who know it.
TEST(Fork, AHeapThatWasMissedIsStillItself) {
  if (platform::kThreadsAreTerminated) GTEST_SKIP() << "there is no fork here";
  const tags::Tag before = tags::create("before"), tag = tags::create("missed");
  auto heap_of = [](tags::Tag of) {
    EXPECT_TRUE(tags::push(own_heap(), of));
    allocate(100);
    Heap* used = heap_in_use_if_any();
    tags::pop();
    return used;
  };
  Actor other;
  Heap *first = heap_of(before), *others = other([&] { return heap_of(tag); }), *tagged = heap_of(tag);
  Heap *older = shared::create(), *heap = create_bound_heap(), *newer = shared::create();
  for (Heap* each : {older, heap, newer}) allocate_in(each, kBlockAlign, 100, false);
  heap->account.set_limit(kMiB);
  const uintptr_t handle = shared::handle_of(heap);
  const Heap* beside = tagged->next_beside;
  ASSERT_NE(beside, nullptr);
  ASSERT_TRUE(tags::push(own_heap(), tag));
  for (Heap* each : {own_heap(), heap, tagged}) ASSERT_TRUE(each->lock.try_acquire(platform::thread_token() + 100));
  fake::on_back_off([] { fake::advance(100); });
  fork::before();
  fork::after_in_child();
  fake::on_back_off(nullptr);
  ASSERT_EQ(tagged->tag, tag);
  EXPECT_EQ(tagged->next_beside, beside);
  EXPECT_EQ(own_heap()->tagging.depth, 1u);

  EXPECT_EQ(shared::handle_of(heap), handle);
  EXPECT_TRUE(is_mine(heap) && is_bound(heap) && heap->tenant.load() != kNoTenant);
  EXPECT_EQ(heap->fork_state, ForkState::whole);
  EXPECT_EQ(heap->account.held(), 0u);
  EXPECT_EQ(heap->account.limit(), kMiB);
  size_t served = 0;
  while (served < kMiB && allocate_in(heap, kBlockAlign, 1000, false) != nullptr) ++served;
  EXPECT_GT(served, 500u);
  EXPECT_LE(served, kMiB / 1000);

  EXPECT_EQ(tags::in_force(), tag);
  EXPECT_EQ(heap_in_use_if_any(), tagged);
  EXPECT_EQ(tags::account_of(tag).held(), others->account.held());
  tags::pop();
  EXPECT_EQ(heap_of(tag), tagged);
  EXPECT_GT(tags::account_of(tag).held(), others->account.held());
  EXPECT_EQ(heap_of(before), first);
  EXPECT_EQ(tags::heaps_of(tag, 0), tagged);
  EXPECT_EQ(tagged->next_of_tag, others);

  std::vector<Heap*> seen;
  {
    registry::Walk walk(platform::thread_token());
    while (Heap* each = walk.next()) seen.push_back(each);
  }
  EXPECT_EQ(seen, (std::vector<Heap*>{newer, heap, older, tagged, others, first}));
  EXPECT_EQ(heap->previous, newer);
  for (Heap* each : {heap, older, newer}) destroy_heap(each);
  registry::check_books();
}

TEST(Fork, BoundHeapsWorkOnInTheChild) {
  if (!kThreadsInChildren) GTEST_SKIP() << "there is no fork here, or none with threads";
  Heap* own = create_bound_heap();
  use_bound_heap(own);
  BoundAndBusy other;
  for (int round = 0; round < 30; ++round) {
    Ending ending = in_child([&] {
      EXPECT_TRUE(is_mine(own));
      // Its bins may be of another moment than its slabs, and its lists are those that were noted.
      EXPECT_EQ(other.heap()->fork_state, ForkState::to_restore);
      for (const Block* bin : other.heap()->bins) EXPECT_EQ(bin, nullptr);
      use_bound_heap(own);
      if (round % 3 == 0) check_and_free(other.kept(), 64);
      if (round % 3 != 1) use_bound_heap(other.heap());
      for (unsigned index = 0; round % 3 != 0 && index < 1000; ++index)
        EXPECT_TRUE(intact(other.kept()[index], 64, index));
      destroy_heap(other.heap());
      use_bound_heap(own);
      destroy_heap(own);
      use_heap();
      return 0;
    });
    ASSERT_TRUE(ending.well(0)) << ending.status << " in round " << round;
    use_bound_heap(own);
  }
}

}  // namespace
}  // namespace rh
