// Debug builds end the process where the books do not balance: each count is broken once.
#include "heap/books.h"

#include <gtest/gtest.h>

#include "heap/registry.h"
#include "heap/remote.h"
#include "support/heaps.h"

namespace rh {
namespace {

class BooksDeathTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!kDebugChecks) GTEST_SKIP() << "release builds check nothing";
    block_ = allocate(64);
    ASSERT_NE(block_, nullptr);
    heap_ = own_heap();
    slab_ = g_realm.span_of(block_);
    registry::check_books();
  }

  // Until the class is refilled.
  void use_up() {
    size_t refills = heap_->refills.value();
    while (heap_->refills.value() == refills) allocate(64);
  }

  void* block_;
  Heap* heap_;
  Span* slab_;
};

constexpr const char* kFailed = "internal check failed";

TEST_F(BooksDeathTest, AMiscountedSlab) {
  slab_->others.set_returned(slab_->others.returned() + 1);
  EXPECT_DEATH(use_up(), kFailed);
  slab_->others.set_returned(slab_->others.returned() - 1);
  slab_->carved.store(static_cast<uint16_t>(slab_->carved.load() + 1));
  EXPECT_DEATH(use_up(), kFailed);
}

TEST_F(BooksDeathTest, ASlabInTheWrongState) {
  slab_->state = SlabState::full;
  EXPECT_DEATH(use_up(), kFailed);
}

TEST_F(BooksDeathTest, ASpanOfTheStoreInNoList) {
  void* block = allocate(40000);
  Span* span = g_realm.span_of(block);
  deallocate(block);
  ASSERT_EQ(span->kind.load(), SpanKind::kept);
  span->units += 1;
  EXPECT_DEATH(registry::check_books(), kFailed);
}

TEST_F(BooksDeathTest, AMiscountedBatch) {
  Actor other;
  other([this] {
    allocate(64);
    deallocate(block_);
    for (Outgoing& out : own_heap()->outgoing) out.count = 0;
    EXPECT_DEATH(post_all(own_heap()), kFailed);
  });
}

TEST_F(BooksDeathTest, MemoryThatTheArenaDoesNotKnow) {
  Span* span = g_arena.allocate({4});
  Units got;
  ASSERT_NE(g_realm.extend({1}, {1}, &got), nullptr);
  EXPECT_DEATH(g_arena.free(span), kFailed);
}

TEST_F(BooksDeathTest, AMiscountedSetOfSpans) {
  for (uint32_t units : {4u, 400u}) {
    Span* span = g_arena.allocate({units});
    Span* barrier = g_arena.allocate({1});
    ASSERT_NE(barrier, nullptr);
    g_arena.free(span);
    span->units += 1;
    EXPECT_DEATH(for (int call = 0; call < 64; ++call) g_arena.check(), kFailed);
    span->units -= 1;
  }
}

}  // namespace
}  // namespace rh
