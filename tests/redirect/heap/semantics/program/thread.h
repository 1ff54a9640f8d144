#pragma once

#include <windows.h>

#include "comparison/line.h"

constexpr DWORD kPatience = 30000;

// Another thread, which calls `work` and is waited for.
class Thread {
 public:
  template <typename F> explicit Thread(F& work) : handle_(CreateThread(nullptr, 0, run<F>, &work, 0, nullptr)) {}
  ~Thread() {
    if (!ended()) fail("a thread did not end");
    CloseHandle(handle_);
  }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  bool ended(DWORD patience = kPatience) const { return WaitForSingleObject(handle_, patience) == WAIT_OBJECT_0; }

 private:
  template <typename F> static DWORD WINAPI run(void* work) {
    (*static_cast<F*>(work))();
    return 0;
  }

  HANDLE handle_;
};
