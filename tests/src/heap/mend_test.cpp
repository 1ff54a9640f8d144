// A thread is terminated in the middle of its work, holding a lock: the others continue, and no block is held twice.
#include "heap/mend.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "heap/registry.h"
#include "heap/shared.h"
#include "support/heaps.h"

namespace rh {
namespace {

constexpr platform::ThreadToken kTerminated = 0x7ffffff0;

class Mend : public testing::Test {
 protected:
  Mend() {
    for (size_t size : {16, 100, 1000, 5000, 40000, 300000}) add(size);
    for (size_t at = 0; at < kept_.size(); at += 2) deallocate(kept_[at]);
    for (size_t at = 1; at < kept_.size(); at += 2) live_.insert(kept_[at]);
    fake::set_terminated(kTerminated);
  }
  ~Mend() override { fake::set_terminated(0); }

  // No live block is handed out again, and any thread can free all of them.
  void expect_to_go_on() {
    std::vector<void*> fresh;
    for (int round = 0; round < 300; ++round) {
      for (size_t size : {16, 100, 1000, 5000, 40000}) {
        fresh.push_back(allocate(size));
        ASSERT_NE(fresh.back(), nullptr);
        ASSERT_TRUE(live_.insert(fresh.back()).second);
        std::memset(fresh.back(), 1, size);
      }
    }
    Actor other;
    other([&] {
      for (size_t at = 1; at < kept_.size(); at += 4) deallocate(kept_[at]);
    });
    for (size_t at = 3; at < kept_.size(); at += 4) deallocate(kept_[at]);
    for (void* block : fresh) deallocate(block);
    EXPECT_FALSE(inconsistent());
  }

 private:
  void add(size_t size) {
    for (int count = 0; count < 200; ++count) kept_.push_back(allocate(size));
  }

  std::vector<void*> kept_;
  std::set<void*> live_;
};

TEST_F(Mend, TheLockOfAHeap) {
  own_heap()->lock.acquire(kTerminated);
  expect_to_go_on();
}

TEST_F(Mend, TheArenasLock) {
  g_arena.lock().acquire(kTerminated);
  expect_to_go_on();
}

TEST_F(Mend, BothAtOnce) {
  own_heap()->lock.acquire(kTerminated);
  g_arena.lock().acquire(kTerminated);
  expect_to_go_on();
}

TEST_F(Mend, TheRegistrysLock) {
  Heap *first = shared::create(), *second = shared::create();
  registry::lock().acquire(kTerminated);
  second->previous = first;  // as when the newest is linked first
  Heap* third = shared::create();
  ASSERT_NE(third, nullptr);
  for (Heap* heap : {second, third, first}) destroy_heap(heap);
  for (Heap* heap = registry::shared_heaps(); heap != nullptr; heap = heap->next) EXPECT_TRUE(registry::is_spare(heap));
  expect_to_go_on();
}

TEST_F(Mend, TheLockOfASharedHeap) {
  Heap* heap = shared::create();
  std::vector<void*> blocks;
  for (size_t size : {16, 1000, 100000})
    for (int count = 0; count < 50; ++count) blocks.push_back(allocate_in(heap, kBlockAlign, size, false));
  heap->lock.acquire(kTerminated);
  std::set<void*> live(blocks.begin(), blocks.end());
  for (int count = 0; count < 500; ++count) ASSERT_TRUE(live.insert(allocate_in(heap, kBlockAlign, 1000, true)).second);
  for (void* block : blocks) deallocate(block);
  shared::trim(heap);
  destroy_heap(heap);
  expect_to_go_on();
}

// A thread frees into a heap, and waits for its lock; another one takes the lock over meanwhile, and allocates.
TEST_F(Mend, FreesThatWaitForTheLockOfASharedHeap) {
  static Heap* heap;
  static std::vector<void*> fresh;
  static Actor* other;
  Actor actor;
  other = &actor;
  fresh.clear();
  heap = shared::create();
  std::vector<void*> blocks;
  for (int count = 0; count < 500; ++count) blocks.push_back(allocate_in(heap, kBlockAlign, 100, false));
  ASSERT_EQ(find_block(blocks.back()).span->armed.load(), slab::kUncounted);
  heap->lock.acquire(kTerminated);
  fake::on_back_off([] {
    fake::on_back_off(nullptr);
    (*other)([] {
      for (int count = 0; count < 500; ++count) fresh.push_back(allocate_in(heap, kBlockAlign, 100, false));
    });
  });
  deallocate(blocks.back());  // of the slab that was taken from
  Span* slab = find_block(fresh.back()).span;
  for (const Block* block = heap->bins[slab->bin.load()]; block != nullptr; block = block->next)
    EXPECT_EQ(find_block(block).span, slab);
  for (void* block : fresh) deallocate(block);
  destroy_heap(heap);
  expect_to_go_on();
}

TEST_F(Mend, LargeBlocksThatWaitForTheLockOfASharedHeap) {
  Heap* heap = shared::create();
  std::vector<void*> blocks;
  for (int count = 0; count < 3; ++count) blocks.push_back(allocate_in(heap, kBlockAlign, 300000, false));
  heap->lock.acquire(kTerminated);
  deallocate(blocks[0]);
  EXPECT_EQ(heap->large.first(), nullptr);
  for (size_t at : {1, 2}) deallocate(blocks[at]);
  EXPECT_EQ(heap->large.first(), nullptr);
  destroy_heap(heap);
  expect_to_go_on();
}

}  // namespace
}  // namespace rh
