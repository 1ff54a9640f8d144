// The Windows headers the platform uses, and what they lack.
#pragma once

// Windows 7 and later.
#if !defined(_WIN32_WINNT)
#define _WIN32_WINNT 0x0601
#endif
#if !defined(WIN32_LEAN_AND_MEAN)
#define WIN32_LEAN_AND_MEAN
#endif
#if !defined(NOMINMAX)
#define NOMINMAX
#endif
#include <windows.h>

#include <cstddef>
#include <cstdint>

// In ntdll: whether LdrShutdownProcess has begun. The calling thread is then the only one.
extern "C" __declspec(dllimport) BOOLEAN NTAPI RtlDllShutdownInProgress(void);

namespace rh::platform {

// The calls below change the calling thread's last error, which the program may be about to read: no heap function may
// change it.
class KeepLastError {
 public:
  KeepLastError() : error_(GetLastError()) {}
  ~KeepLastError() { SetLastError(error_); }
  KeepLastError(const KeepLastError&) = delete;
  KeepLastError& operator=(const KeepLastError&) = delete;

 private:
  DWORD error_;
};

// Handles that are kept are protected: a program that closes one of its own twice would otherwise close what was made
// in between, and the number might next be that of an object of the program's, which we would then wait for, set or
// close.
inline HANDLE protect_from_close(HANDLE handle) {
  constexpr DWORD kProtected = HANDLE_FLAG_PROTECT_FROM_CLOSE;
  if (handle != nullptr) SetHandleInformation(handle, kProtected, kProtected);
  return handle;
}

inline void close_protected(HANDLE handle) {
  if (handle == nullptr) return;
  SetHandleInformation(handle, HANDLE_FLAG_PROTECT_FROM_CLOSE, 0);
  CloseHandle(handle);
}

inline void* pointer_to(uintptr_t address) { return reinterpret_cast<void*>(address); }

// For platform/windows and entry/windows: the calling thread is about to end.
void note_thread_end();

// Keeps the exit code of the calling thread, which is about to end: if the process ends with the helper, the helper
// exits with that code.
void keep_exit_code();

// Nobody is told of anything any more: the library is about to be unloaded.
void forget_probes();

// Whether the process has more rights than the one that started it.
bool is_raised();

// Whether the calling thread is the helper, which may be only starting, or ending already. A system call.
bool is_helper();

// Ends the helper thread for good, wherever it is, when a library is about to be unloaded.
void stop_helper();

}  // namespace rh::platform
