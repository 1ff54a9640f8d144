#include <gtest/gtest.h>

#include "support/stacks.h"
#include "windows.h"

namespace {

// In 32 bits frame pointers are followed, and functions that keep none are left out.
constexpr bool kFollowsAll = sizeof(void*) == 8;
TEST(Stack, HasTheCallersInnermostFirst) {
  if (!kFollowsAll) GTEST_SKIP() << "32 bits";
  Stack stack;
  Calls calls;
  call_outer(stack, calls);
  EXPECT_TRUE(calls.are_in(stack));
  EXPECT_LE(stack.place(calls.inner), 2u);
}

TEST(Stack, IsCutAtItsOuterEnd) {
  if (!kFollowsAll) GTEST_SKIP() << "32 bits";
  Stack stack;
  Calls calls;
  call_outer(stack, calls, 2);
  EXPECT_EQ(stack.count, 2u);
  EXPECT_EQ(stack.frames[2], 0u);
}

TEST(Stack, KeepsTheLastError) {
  Stack stack;
  SetLastError(77);
  stack.count = rh::platform::stack(stack.frames, kMostFrames);
  EXPECT_EQ(GetLastError(), 77u);
}

}  // namespace
