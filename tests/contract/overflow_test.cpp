// Sizes whose computation overflows never give a short block.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "requests.h"
#include "support/names.h"
#include "support/pattern.h"
#include "support/process.h"

using namespace contract;

namespace {

constexpr std::size_t kHalfBits = std::size_t{1} << (sizeof(std::size_t) * 4);  // its square wraps to 0

const char* const kLenient = "the C library computes blindly";

struct Product {
  std::size_t count;
  std::size_t size;
};

const Product wrapping[] = {
    {kHalfBits, kHalfBits},      // to 0
    {kHalfBits + 1, kHalfBits},  // to a small number
    {kHalfBits + 1, kHalfBits + 1},
    {kHalfBits * 2, kHalfBits * 2},
    {kMost / 2 + 1, 2},  // to exactly 0
    {kMost / 2 + 2, 2},  // to 2
    {kMost / 3 + 1, 3},
    {kMost / 16 + 1, 16},  // to 0
    {kMost / 16 + 3, 16},
    {kMost, 2},
    {kMost, kMost},  // to 1
    {kMost / 4096 + 2, 4096},
    {kMost / 7, 13},
};

TEST(Overflow, CallocProduct) {
  for (const auto& [count, size] : wrapping) {
    for (const auto& [first, second] : {Product{count, size}, Product{size, count}}) {
      errno = 0;
      void* block = calloc(opaque(first), opaque(second));
      EXPECT_EQ(block, nullptr) << first << " * " << second;
      EXPECT_EQ(errno, ENOMEM) << first << " * " << second;
      free(block);
    }
  }
}

TEST(Overflow, ResizedArrayKeepsTheBlock) {
  if (!runtime_is_strict()) GTEST_SKIP() << kLenient;
  for (const std::size_t old : {1, 40, 5000, 200000}) {
    void* block = malloc(old);
    fill(block, old, 7);
    for (const auto& [count, size] : wrapping) {
      errno = 0;
      ASSERT_EQ(resize_array(opaque(block), opaque(count), opaque(size)), nullptr) << count << " * " << size;
      EXPECT_EQ(errno, ENOMEM) << count << " * " << size;
      ASSERT_EQ(resize_array(nullptr, opaque(size), opaque(count)), nullptr) << size << " * " << count;
    }
    EXPECT_TRUE(intact(block, old, 7));
    free(block);
  }
}

TEST(Overflow, ZeroTimesAnythingIsZero) {
  for (const std::size_t other : {std::size_t{0}, std::size_t{1}, kHalfBits, kMost}) {
    for (const auto& [count, size] : {Product{0, other}, Product{other, 0}}) {
      void* block = calloc(opaque(count), opaque(size));
      EXPECT_NE(block, nullptr) << count << " * " << size;
      free(block);
    }
  }
}

// size + alignment, and a size rounded up to the alignment, must not wrap.
TEST(Overflow, AlignedSizes) {
  if (!runtime_is_strict()) GTEST_SKIP() << kLenient;
  for (std::size_t alignment = sizeof(void*); alignment <= (std::size_t{1} << 30); alignment *= 2) {
    for (const std::size_t short_of :
         {std::size_t{0}, std::size_t{1}, alignment - 1, alignment, alignment + 1, alignment * 2 - 1}) {
      const std::size_t size = kMost - short_of;
      if (size <= kMost / 2) continue;
      for (const AlignedMaker& maker : aligned_makers()) {
        errno = 0;
        EXPECT_EQ(maker.make(alignment, opaque(size)), nullptr) << alignment << ", " << size;
        EXPECT_EQ(errno, ENOMEM) << maker.call << ' ' << alignment << ", " << size;
      }
    }
  }
}

TEST(Overflow, HugeAlignmentIsRefused) {
  if (!runtime_is_strict()) GTEST_SKIP() << kLenient;
  for (std::size_t alignment = kMost / 2 + 1; alignment > (narrow ? 1024 * MiB : kMost / 8); alignment /= 2) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{4096}, kMost / 2}) {
      for (const AlignedMaker& maker : aligned_makers()) {
        errno = 0;
        EXPECT_EQ(maker.make(opaque(alignment), opaque(size)), nullptr) << alignment << ", " << size;
        EXPECT_TRUE(errno == ENOMEM || errno == EINVAL)
            << maker.call << ' ' << alignment << ", " << size << ": " << errno;
      }
    }
  }
}

}  // namespace
