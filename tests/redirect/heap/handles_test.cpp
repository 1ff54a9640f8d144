#include "redirect/heap/handles.h"

#include <gtest/gtest.h>
#include <memory>
#include <thread>
#include <vector>

namespace rh::heaps {
namespace {

const void* handle(size_t number) { return reinterpret_cast<const void*>(number << 16); }
Heap* heap(size_t number) { return reinterpret_cast<Heap*>(number << 6); }

class HandlesTest : public testing::Test {
 protected:
  std::unique_ptr<Handles> handles_ = std::make_unique<Handles>();
};

TEST_F(HandlesTest, FindsWhatWasAddedAndNothingElse) {
  for (size_t i = 1; i <= 100; ++i) ASSERT_TRUE(handles_->add(handle(i), heap(i), static_cast<uint32_t>(i)));
  for (size_t i = 1; i <= 100; ++i) {
    Served* served = handles_->find(handle(i));
    ASSERT_NE(served, nullptr);
    EXPECT_EQ(served->heap, heap(i));
    EXPECT_EQ(served->flags, i);
    EXPECT_EQ(served->locked, 0u);
  }
  for (size_t i = 101; i <= 10000; ++i) EXPECT_EQ(handles_->find(handle(i)), nullptr);
  EXPECT_EQ(handles_->find(reinterpret_cast<const void*>(1)), nullptr);
}

TEST_F(HandlesTest, WhatIsRemovedIsGoneAndGivenOnce) {
  handles_->add(handle(1), heap(1), 0);
  handles_->add(handle(2), heap(2), 0);
  EXPECT_EQ(handles_->remove(handle(1)), heap(1));
  EXPECT_EQ(handles_->remove(handle(1)), nullptr);
  EXPECT_EQ(handles_->find(handle(1)), nullptr);
  EXPECT_EQ(handles_->find(handle(2))->heap, heap(2));
  EXPECT_TRUE(handles_->add(handle(1), heap(3), 0));
  EXPECT_EQ(handles_->find(handle(1))->heap, heap(3));
}

TEST_F(HandlesTest, RefusesWhatFindsNoPlaceAndKeepsTheRest) {
  constexpr size_t kMost = Handles::kSets * Handles::kPlaces;
  std::vector<size_t> added;
  for (size_t i = 1; i <= 4 * kMost; ++i)
    if (handles_->add(handle(i), heap(i), 0)) added.push_back(i);
  EXPECT_EQ(added.size(), kMost);
  for (size_t i : added) ASSERT_EQ(handles_->find(handle(i))->heap, heap(i));
  for (size_t i : added) ASSERT_EQ(handles_->remove(handle(i)), heap(i));
  EXPECT_TRUE(handles_->add(handle(4 * kMost + 1), heap(1), 0));
}

TEST_F(HandlesTest, HundredsOfHeapsFindAPlaceAsSystemsSpaceThem) {
  for (size_t step : {size_t{1}, size_t{16}, size_t{17}}) {
    Handles* handles = new Handles;
    size_t refused = 0;
    for (size_t i = 0; i < 600; ++i) refused += !handles->add(handle(33 + i * step), heap(1), 0);
    EXPECT_EQ(refused, 0u) << "a heap every " << step * 64 << " KiB";
    delete handles;
  }
}

TEST_F(HandlesTest, ThreadsAddAndRemoveAtOnce) {
  constexpr size_t kThreads = 8;
  constexpr size_t kRounds = 20000;
  std::vector<std::thread> threads;
  std::atomic<size_t> wrong{0};
  for (size_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (size_t round = 0; round < kRounds; ++round) {
        size_t mine = 1 + thread + kThreads * (round % 50);
        if (!handles_->add(handle(mine), heap(mine), 0)) ++wrong;
        Served* served = handles_->find(handle(mine));
        if (served == nullptr || served->heap != heap(mine)) ++wrong;
        if (handles_->remove(handle(mine)) != heap(mine)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
}

// What a free place holds is no handle: HeapDestroy(NULL) once got the heap that was there before.
TEST_F(HandlesTest, FindsNothingForNoHandle) {
  for (size_t i = 0; i <= 1000; ++i) {
    ASSERT_TRUE(handles_->add(handle(i + 1), heap(i + 1), 0));
    ASSERT_EQ(handles_->remove(handle(i + 1)), heap(i + 1));
  }
  EXPECT_EQ(handles_->find(nullptr), nullptr);
  EXPECT_EQ(handles_->remove(nullptr), nullptr);
}

}  // namespace
}  // namespace rh::heaps
