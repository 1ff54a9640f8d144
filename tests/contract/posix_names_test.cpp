// The names that POSIX and the C library add to C's.
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "support/library.h"
#include "support/pattern.h"
#include "support/process.h"

using namespace contract;

namespace {

constexpr int kUntouched = 4242;
constexpr std::size_t kMost = SIZE_MAX;

const std::size_t impossible[] = {kMost,         kMost - 15,    kMost - 4096,
                                  kMost - MiB,   kMost / 2 + 1,  // PTRDIFF_MAX + 1
                                  kMost / 2 + 2, kMost / 4 * 3};

bool aligned(const void* block, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(block) % alignment == 0;
}

TEST(Errno, PosixMemalignReturnsEnomem) {
  for (const std::size_t size : impossible) {
    void* block = &block;
    EXPECT_EQ(posix_memalign(&block, 64, opaque(size)), ENOMEM) << size;
    EXPECT_EQ(block, &block) << "the pointer is not written on failure";
  }
}

TEST(Errno, PosixMemalignReturnsEinvalAndLeavesErrno) {
  const std::size_t bad[] = {
      0,  1,    2,    3,     sizeof(void*) - 1, sizeof(void*) + 1, 3 * sizeof(void*), 24,
      48, 4095, 4097, kMost, kMost / 2};
  for (const std::size_t alignment : bad) {
    void* block = &block;
    errno = kUntouched;
    EXPECT_EQ(posix_memalign(&block, opaque(alignment), 100), EINVAL) << alignment;
    EXPECT_EQ(errno, kUntouched) << alignment;
    EXPECT_EQ(block, &block) << alignment;
  }
}

// The C library of today refuses such an alignment, the one of yesterday rounded it up: both are
// right, a block that is less aligned is not.
TEST(Errno, OddAlignmentIsRefusedOrRoundedUp) {
  for (const std::size_t alignment : {3, 24, 48, 100, 4097}) {
    errno = kUntouched;
    void* block = aligned_alloc(opaque(alignment), 1000);
    if (block) {
      std::size_t rounded = 1;
      while (rounded < alignment) rounded *= 2;
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % rounded, 0u) << alignment;
      free(block);
    } else {
      EXPECT_EQ(errno, EINVAL) << alignment;
    }
  }
}

TEST(Alignment, PageFunctions) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (const std::size_t size : interesting_sizes(2 * MiB, 20)) {
    void* const whole = valloc(size);
    void* const rounded = pvalloc(size);
    ASSERT_NE(whole, nullptr) << size;
    ASSERT_NE(rounded, nullptr) << size;
    EXPECT_TRUE(aligned(whole, page)) << size;
    EXPECT_TRUE(aligned(rounded, page)) << size;
    EXPECT_GE(malloc_usable_size(whole), size);
    const std::size_t pages = (size + page - 1) / page * page;
    EXPECT_GE(malloc_usable_size(rounded), pages) << "pvalloc(" << size << ") rounds up to pages";
    fill(rounded, pages, 3);
    EXPECT_TRUE(intact(rounded, pages, 3));
    free(whole);
    free(rounded);
  }
}

TEST(Overflow, PageRounding) {
  for (std::size_t short_of = 0; short_of < 3 * 4096; short_of += short_of < 20 ? 1 : 509) {
    errno = 0;
    EXPECT_EQ(pvalloc(opaque(kMost - short_of)), nullptr) << short_of;
    EXPECT_EQ(errno, ENOMEM) << short_of;
    errno = 0;
    EXPECT_EQ(valloc(opaque(kMost - short_of)), nullptr) << short_of;
    EXPECT_EQ(errno, ENOMEM) << short_of;
  }
}

}  // namespace
