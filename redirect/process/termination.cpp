#include "termination.h"

#include "arena/arena.h"
#include "entry/start.h"
#include "platform/windows/system.h"
#include "redirect/patcher/system_function.h"

namespace rh::redirect {

namespace {

constinit const void* g_original = nullptr;

bool is_this_process(HANDLE process) {
  return process == GetCurrentProcess() || GetProcessId(process) == GetCurrentProcessId();
}

// Whether statistics can be gathered: not where the thread that crashed held the lock they need, or another that was
// suspended. Statistics may be lost; the end may not.
bool can_gather() {
  constexpr unsigned kAttempts = 200;
  for (unsigned attempt = 0; attempt < kAttempts; ++attempt) {
    if (g_arena.lock().try_acquire()) {
      g_arena.lock().release();
      return true;
    }
    platform::back_off(attempt);
  }
  return false;
}

void say_what_is_to_be_said(HANDLE process) {
  platform::KeepLastError keep;
  if (is_this_process(process) && can_gather()) end();
}

BOOL WINAPI terminate_process(HANDLE process, UINT code) {
  say_what_is_to_be_said(process);
  return reinterpret_cast<decltype(&TerminateProcess)>(reinterpret_cast<uintptr_t>(g_original))(process, code);
}

}  // namespace

const char* watch_termination() {
  return replace_system_function("TerminateProcess", reinterpret_cast<const void*>(terminate_process), &g_original);
}

}  // namespace rh::redirect
