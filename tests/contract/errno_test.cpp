// errno: ENOMEM when memory is refused, EINVAL for a bad alignment, and otherwise left alone.
#include <gtest/gtest.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <thread>

#include "requests.h"
#include "support/library.h"
#include "support/names.h"
#include "support/pattern.h"
#include "support/process.h"

using namespace contract;

namespace {

TEST(Errno, RefusedRequestsSetEnomem) {
  for (const Maker& request : makers()) {
    for (const std::size_t size : impossible) {
      errno = kUntouched;
      void* block = opaque(request.make(opaque(size)));
      EXPECT_EQ(block, nullptr) << request.call << " of " << size;
      if (runtime_is_strict()) EXPECT_EQ(errno, ENOMEM) << request.call << " of " << size;
    }
  }
}

TEST(Errno, FailedReallocKeepsTheBlock) {
  for (const std::size_t size : {1, 100, 4000, 100000, 5000000}) {
    void* block = malloc(size);
    ASSERT_NE(block, nullptr);
    fill(block, size, size);
    for (const std::size_t wanted : impossible) {
      errno = kUntouched;
      ASSERT_EQ(realloc(opaque(block), opaque(wanted)), nullptr) << wanted;
      if (!runtime_is_strict()) continue;
      EXPECT_EQ(errno, ENOMEM) << wanted;
      errno = kUntouched;
      ASSERT_EQ(resize_array(opaque(block), opaque(wanted / 2), opaque<std::size_t>(8)), nullptr) << wanted;
      EXPECT_EQ(errno, ENOMEM) << wanted;
    }
    EXPECT_TRUE(intact(block, size, size));
    free(block);
  }
}

const std::size_t served[] = {0, 1, 16, 100, 1000, 5000, 20000, 70000, 300000, 1 << 20, 5 << 20, 40 << 20,
                              // A 32-bit program may have no gap that large.
                              narrow ? 20 << 20 : 100 << 20};

TEST(Errno, SuccessLeavesErrno) {
  for (const std::size_t size : served) {
    for (const Maker& request : makers()) {
      errno = kUntouched;
      void* block = request.make(opaque(size));
      ASSERT_NE(block, nullptr) << request.call << " of " << size;
      EXPECT_EQ(errno, kUntouched) << request.call << " of " << size;
      for (const std::size_t next : {size * 2 + 1, size / 3 + 1}) {
        block = realloc(block, next);
        ASSERT_NE(block, nullptr);
        EXPECT_EQ(errno, kUntouched) << "realloc of " << size << " to " << next;
      }
      free(block);
    }
  }
}

TEST(Errno, FreeLeavesErrno) {
  errno = kUntouched;
  free(nullptr);
  EXPECT_EQ(errno, kUntouched);
  for (const std::size_t size : served) {
    for (const Maker& request : makers()) {
      void* block = request.make(opaque(size));
      ASSERT_NE(block, nullptr);
      errno = kUntouched;
      free(block);
      EXPECT_EQ(errno, kUntouched) << request.call << " of " << size;
    }
  }
}

TEST(Errno, FreeOfAnotherThreadsBlockLeavesErrno) {
  for (const std::size_t size : served) {
    void* block = nullptr;
    std::thread([&] { block = malloc(size); }).join();
    errno = kUntouched;
    free(block);
    EXPECT_EQ(errno, kUntouched) << size;
  }
}

}  // namespace
