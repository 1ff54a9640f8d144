// Each thread's word, in threads created before and after it was first set, and where the slots that are read inline
// are all taken.
#include "platform/thread_slot.h"

#include <gtest/gtest.h>

#include <vector>

#include "last_error.h"
#include "threads.h"

namespace rh {
namespace {

using namespace platform;

void* word(uintptr_t number) { return pointer_to(number); }

void expect_word(void* expected) {
  EXPECT_EQ(thread_word(), expected);
  EXPECT_EQ(KEEPING_LAST_ERROR(thread_word_slow()), expected);
}

// Uses up TLS slots.
class Slots {
 public:
  ~Slots() {
    for (DWORD slot : taken_) TlsFree(slot);
  }
  // False when none is left.
  bool take() {
    DWORD slot = TlsAlloc();
    if (slot == TLS_OUT_OF_INDEXES) return false;
    taken_.push_back(slot);
    return true;
  }
  void take_near() {
    constexpr DWORD kNear = 64;
    while (take() && taken_.back() < kNear) {}
  }
  size_t take_all() {
    while (take()) {}
    return taken_.size();
  }

 private:
  std::vector<DWORD> taken_;
};

class ThreadSlot : public testing::Test {
 protected:
  ~ThreadSlot() override { forget_thread_words(); }
};

size_t free_slots() { return Slots().take_all(); }

TEST_F(ThreadSlot, IsNullUntilItIsSet) {
  expect_word(nullptr);
  KEEPING_LAST_ERROR(set_thread_word(word(16)));
  expect_word(word(16));
  KEEPING_LAST_ERROR(set_thread_word(nullptr));
  expect_word(nullptr);
}

TEST_F(ThreadSlot, EachThreadHasItsOwn) {
  Obedient before;
  before.run([] { expect_word(nullptr); });
  set_thread_word(word(16));
  Obedient after;
  for (Obedient* thread : {&before, &after}) thread->run([] { expect_word(nullptr); });
  before.run([] { set_thread_word(word(32)); });
  after.run([] { set_thread_word(word(48)); });
  before.run([] { expect_word(word(32)); });
  after.run([] { expect_word(word(48)); });
  expect_word(word(16));
}

TEST_F(ThreadSlot, ThreadsThatAreFirstTogetherShareOneSlot) {
  size_t before = free_slots();
  for (int round = 0; round < 20; ++round) {
    in_threads(4, [](unsigned at) {
      set_thread_word(word(16 * (at + 1)));
      expect_word(word(16 * (at + 1)));
    });
    ASSERT_EQ(free_slots(), before - 1);
    expect_word(nullptr);
    forget_thread_words();
  }
}

// The inline read returns null then; the slow path knows the value.
TEST_F(ThreadSlot, PastTheFirst64IsReadTheSlowWay) {
  Slots slots;
  slots.take_near();
  Obedient other;
  set_thread_word(word(16));
  other.run([] {
    EXPECT_EQ(thread_word_slow(), nullptr);
    set_thread_word(word(32));
  });
  EXPECT_EQ(thread_word(), nullptr);
  EXPECT_EQ(KEEPING_LAST_ERROR(thread_word_slow()), word(16));
  other.run([] {
    EXPECT_EQ(thread_word(), nullptr);
    EXPECT_EQ(KEEPING_LAST_ERROR(thread_word_slow()), word(32));
  });
}

TEST_F(ThreadSlot, WithoutAnySlotStaysNull) {
  Slots slots;
  EXPECT_GT(slots.take_all(), 1000u);
  KEEPING_LAST_ERROR(set_thread_word(word(16)));
  expect_word(nullptr);
}

TEST_F(ThreadSlot, ForgottenIsGivenBackAndNull) {
  size_t before = free_slots();
  Obedient other;
  for (uintptr_t round = 1; round < 4; ++round) {
    set_thread_word(word(16 * round));
    other.run([&] { set_thread_word(word(32 * round)); });
    forget_thread_words();
    EXPECT_EQ(free_slots(), before);
    expect_word(nullptr);
    other.run([] { expect_word(nullptr); });
    // The slot may now be reused by others.
    DWORD slot = TlsAlloc();
    TlsSetValue(slot, word(64));
    expect_word(nullptr);
    TlsFree(slot);
    // A newly allocated slot holds nothing of the old one.
    set_thread_word(nullptr);
    other.run([] { expect_word(nullptr); });
    forget_thread_words();
  }
}

}  // namespace
}  // namespace rh
