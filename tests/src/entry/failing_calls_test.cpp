// Makes many kinds of request while one call to the OS after another fails: refused requests return NULL and ENOMEM,
// existing blocks keep their content, and afterwards everything works as before.
#include <errno.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "base/bits.h"
#include "platform/fake/fake.h"
#include "reheap/reheap.h"
#include "support/child.h"
#include "support/heaps.h"

namespace rh {
namespace {

// Blocks and their contents.
class Blocks {
 public:
  // Records the result of a request. Whether it was served.
  bool enter(void* block, size_t size) {
    if (block == nullptr) {
      EXPECT_EQ(errno, ENOMEM);
      errno = 0;
      return false;
    }
    EXPECT_GE(rh_usable_size(block), size);
    blocks_.push_back({block, size, ++seed_});
    fill(block, size, seed_);
    return true;
  }

  void resize_all(size_t to) {
    for (Entry& entry : blocks_) {
      void* block = rh_realloc(entry.block, to);
      if (block == nullptr) {
        EXPECT_EQ(errno, ENOMEM);
        errno = 0;
        continue;  // the old block remains valid
      }
      EXPECT_TRUE(intact(block, std::min(entry.size, to), entry.seed));
      entry = {block, to, entry.seed};
      fill(block, to, entry.seed);
    }
  }

  void free_all() {
    for (Entry& entry : blocks_) {
      EXPECT_TRUE(intact(entry.block, entry.size, entry.seed));
      rh_free(entry.block);
    }
    blocks_.clear();
    EXPECT_EQ(errno, 0);
  }

 private:
  struct Entry {
    void* block;
    size_t size;
    unsigned seed;
  };
  std::vector<Entry> blocks_;
  unsigned seed_ = 0;
};

void expect_zero(void* block, size_t size) {
  if (block != nullptr) EXPECT_TRUE(all_zero(block, size));
}

void use_one_thread() {
  errno = 0;
  Blocks blocks;
  for (size_t size : {size_t{1}, size_t{3000}, size_t{200000}}) {
    for (int count = 0; count < 2; ++count) blocks.enter(rh_malloc(size), size);
    void* zeroed = rh_calloc(3, size);
    expect_zero(zeroed, 3 * size);
    blocks.enter(zeroed, 3 * size);
    blocks.enter(rh_aligned_alloc(4096, size), size);
    blocks.enter(rh_aligned_alloc(256 * 1024, size), size);
  }
  blocks.resize_all(5000);
  blocks.resize_all(150000);
  blocks.resize_all(400000);
  blocks.resize_all(70);
  if (rh_heap* heap = rh_heap_create(); heap != nullptr) {
    blocks.enter(rh_heap_malloc(heap, 100), 100);
    blocks.enter(rh_heap_malloc(heap, 100000), 100000);
    void* zeroed = rh_heap_calloc(heap, 10, 1000);
    expect_zero(zeroed, 10000);
    blocks.enter(zeroed, 10000);
    blocks.free_all();
    rh_heap_destroy(heap);
  } else {
    EXPECT_EQ(errno, ENOMEM);
    errno = 0;
  }
  blocks.free_all();
}

// Slabs of which another thread has freed half and looked at, so that they are left, before the rest is freed.
void free_by_turns() {
  Blocks own, passed;
  for (int count = 0; count < 100; ++count) (count % 2 == 0 ? own : passed).enter(rh_malloc(1000), 1000);
  std::thread([&] {
    passed.free_all();
    rh_trim();
  }).join();
  own.free_all();
}

void use_threads() {
  Blocks passed;
  std::thread maker([&] {
    errno = 0;
    use_one_thread();
    for (int count = 0; count < 2000; ++count) passed.enter(rh_malloc(700), 700);
  });
  maker.join();
  errno = 0;
  passed.free_all();
  free_by_turns();
  std::thread([] { use_one_thread(); }).join();
  rh_trim();
  fake::step_helper();
}

// What must be served when nothing fails.
void expect_service() {
  for (size_t size : {size_t{16}, size_t{3000}, 8 * kMiB}) {
    void* block = rh_malloc(size);
    EXPECT_NE(block, nullptr) << size;
    if (block != nullptr) fill(block, size, 1);
    rh_free(block);
  }
  std::thread([] {
    void* block = rh_calloc(100, 100);
    EXPECT_NE(block, nullptr);
    expect_zero(block, 10000);
    rh_free(block);
  }).join();
  rh_heap* heap = rh_heap_create();
  EXPECT_NE(heap, nullptr);
  rh_heap_destroy(heap);
}

using Fail = void (*)(fake::Call, size_t);

class FailingCalls : public testing::TestWithParam<fake::Call> {
 protected:
  // At every n, until the scenario makes fewer calls than that.
  void at_every(Fail fail) {
    for (size_t nth = 1;; ++nth) {
      ASSERT_LT(nth, 1000u);
      Ending ending = in_child([&] {
        fail(GetParam(), nth);
        use_threads();
        bool reached = fake::calls(GetParam()) >= nth;
        fail(GetParam(), 0);
        expect_service();
        return reached ? 0 : 2;
      });
      ASSERT_TRUE(ending.well(0) || ending.well(2)) << "call " << nth << ", status " << ending.status;
      if (ending.well(2)) return;
    }
  }
};

TEST_P(FailingCalls, EachInTurn) { at_every(fake::fail_nth); }

TEST_P(FailingCalls, AllFromEachOn) { at_every(fake::fail_from); }

std::string kind_name(const testing::TestParamInfo<fake::Call>& info) {
  constexpr const char* kNames[] = {"reserve", "commit", "purge", "move", "guard", "unguard", "start_helper", "open"};
  static_assert(std::size(kNames) == static_cast<size_t>(fake::Call::count));
  return kNames[static_cast<size_t>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Kinds, FailingCalls,
                         testing::Values(fake::Call::reserve, fake::Call::commit, fake::Call::purge, fake::Call::move,
                                         fake::Call::start_helper),
                         kind_name);

}  // namespace
}  // namespace rh
