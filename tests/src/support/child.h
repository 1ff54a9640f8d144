// Runs something in a separate process, where it may use up or ruin what is process-wide.
#pragma once

#include <gtest/gtest.h>

#ifdef _WIN32
#include "support/replayed_child.h"
#else
#include <sys/wait.h>
#include <unistd.h>

namespace rh {

inline constexpr bool kForks = true;

struct Ending {
  int status;
  bool well(int code) const { return WIFEXITED(status) && WEXITSTATUS(status) == code; }
};

// The exit code is the result of `body`, from 0 to 9, or 10 when an expectation failed.
template <typename Body> Ending in_child(Body body) {
  pid_t child = ::fork();
  if (child == 0) {
    int code = body();
    _exit(testing::Test::HasFailure() ? 10 : code);
  }
  Ending ending = {-1};
  EXPECT_EQ(waitpid(child, &ending.status, 0), child);
  return ending;
}

}  // namespace rh
#endif
