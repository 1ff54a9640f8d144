// Which block a pointer means.
#include "heap/block.h"

#include <gtest/gtest.h>

#include "support/heaps.h"

namespace rh {
namespace {

char* take(size_t size) { return static_cast<char*>(allocate(size)); }

void expect_no_block(const void* pointer) {
  BlockAt at = find_block(pointer);
  EXPECT_EQ(at.span, nullptr);
  EXPECT_FALSE(at.is_start());
  EXPECT_FALSE(at.is_live());
}

TEST(FindBlock, KnowsSmallOnesByAnyAddress) {
  // 24 KiB: its slab has several units.
  for (size_t size : {16, 100, 1000, 24 * 1024}) {
    char* block = take(size);
    size_t usable = usable_size(block, "test");
    for (size_t offset : {size_t{0}, size_t{1}, size - 1, usable - 1}) {
      BlockAt at = find_block(block + offset);
      ASSERT_NE(at.span, nullptr);
      EXPECT_FALSE(at.is_large());
      EXPECT_EQ(at.start(), block);
      EXPECT_EQ(at.usable_size(), usable);
      EXPECT_EQ(at.is_start(), offset == 0);
      EXPECT_EQ(at.is_live(), offset == 0);
    }
    EXPECT_EQ(find_block(block).requested_size(), kExactSizes ? size : usable);
  }
}

TEST(FindBlock, KnowsLargeOnesByAnyAddress) {
  for (size_t units : {size_t{3}, size_t{200}}) {
    size_t size = units * kUnitSize;
    char* block = take(size - 5);
    for (size_t offset : {size_t{0}, size_t{1}, kUnitSize, size / 2, size - 1}) {
      BlockAt at = find_block(block + offset);
      ASSERT_EQ(at.span, g_realm.span_of(block)) << offset;
      EXPECT_TRUE(at.is_large());
      EXPECT_EQ(at.start(), block);
      EXPECT_EQ(at.usable_size(), size);
      EXPECT_EQ(at.is_live(), offset == 0);
    }
    EXPECT_EQ(find_block(block).requested_size(), kExactSizes ? size - 5 : size);
    deallocate(block);
    expect_no_block(block);
    expect_no_block(block + kUnitSize);
  }
}

TEST(FindBlock, KnowsWhereNoneWasMadeYet) {
  char* block = take(1000);
  BlockAt at = find_block(block);
  size_t carved = at.span->carved.load();
  ASSERT_LT(carved, slab::properties(at.span).capacity);
  BlockAt behind =
      find_block(reinterpret_cast<char*>(g_realm.address(at.span)) + carved * slab::properties(at.span).size);
  EXPECT_EQ(behind.span, at.span);
  EXPECT_FALSE(behind.is_start());
}

TEST(FindBlock, KnowsWhatIsNotOurs) {
  int local = 0;
  expect_no_block(nullptr);
  expect_no_block(&local);
  EXPECT_FALSE(in_realm(&local));
  void* block = allocate(100);
  expect_no_block(&local);
  EXPECT_TRUE(in_realm(block));
}

}  // namespace
}  // namespace rh
