// The calling process's memory, by the real system calls.
#include "platform/platform.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "support/pages.h"

namespace {

using namespace rh::platform;

TEST(Memory, ThatPagesWereMovedFromIsZeroWhenItIsReplacedByZeros) {
  const size_t size = size_t{1} << 20;
  const uintptr_t from = reserve(2 * size, page_size()), to = from + size;
  ASSERT_NE(from, 0u);
  ASSERT_TRUE(commit(from, 2 * size));
  std::memset(reinterpret_cast<void*>(from), 'x', size);
  const Moved moved = move_pages(from, to, size);
  ASSERT_NE(moved, Moved::lost);
  EXPECT_EQ(std::string(reinterpret_cast<char*>(moved == Moved::done ? to : from), size), std::string(size, 'x'));
  for (const uintptr_t at : {from, to}) {
    rh::pages::mark(at, size, 2);
    ASSERT_TRUE(replace_by_zeros(at, size));
    EXPECT_TRUE(rh::pages::are_zero(at, size));
  }
  release(from, 2 * size);
}

// The kernel replaces no page that is locked, and marks none of them as a guard.
TEST(Memory, ThatIsLockedReadsAsZeroAfterAGuard) {
  constexpr unsigned kOnFault = 1;  // MLOCK_ONFAULT, which glibc 2.17 has not
  const size_t page = page_size(), size = 4 * page;
  for (const bool guarded_before : {false, true}) {
    const uintptr_t at = reserve(size, page);
    ASSERT_TRUE(commit(at, size));
    if (guarded_before) ASSERT_TRUE(guard(at + page, page, GuardPrice::any));
    void* const memory = reinterpret_cast<void*>(at);
    if (syscall(SYS_mlock2, memory, size, kOnFault) != 0) GTEST_SKIP() << "so much cannot be locked here";
    std::memset(memory, 'x', page);
    std::memset(reinterpret_cast<void*>(at + 2 * page), 'x', 2 * page);
    ASSERT_TRUE(guard(at, size, GuardPrice::any));
    ASSERT_TRUE(unguard(at, size));
    EXPECT_EQ(std::string(static_cast<char*>(memory), size), std::string(size, 0)) << guarded_before;
    release(at, size);
  }
}

}  // namespace
