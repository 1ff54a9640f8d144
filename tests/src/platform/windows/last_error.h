// No platform function may change the calling thread's last error.
#pragma once

#include <gtest/gtest.h>

#include "platform/windows/system.h"

namespace rh {

class LastErrorIsKept {
 public:
  LastErrorIsKept() { SetLastError(kMark); }
  ~LastErrorIsKept() { EXPECT_EQ(GetLastError(), kMark); }
  LastErrorIsKept(const LastErrorIsKept&) = delete;
  LastErrorIsKept& operator=(const LastErrorIsKept&) = delete;

 private:
  static constexpr DWORD kMark = 0x2000ABCD;  // an application-defined code
};

template <typename Call> auto keeping_last_error(Call call) {
  LastErrorIsKept check;
  return call();
}

}  // namespace rh

// The value of the expression.
#define KEEPING_LAST_ERROR(expression) ::rh::keeping_last_error([&] { return expression; })
