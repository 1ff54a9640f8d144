// A handle that is closed when it goes out of scope.
#pragma once

#include <windows.h>

#include <memory>

namespace runner {

struct CloseHandleLater {
  using pointer = HANDLE;
  void operator()(HANDLE handle) const {
    if (handle != INVALID_HANDLE_VALUE) CloseHandle(handle);
  }
};
using Handle = std::unique_ptr<void, CloseHandleLater>;

}  // namespace runner
