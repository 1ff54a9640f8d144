// Whether the process has more privileges than whoever started it. Windows has no setuid files; the nearest thing is
// UAC: the elevated process's environment is built from settings that the user's ordinary processes can write.
#include "platform/platform.h"
#include "platform/windows/system.h"

#include <winternl.h>

extern "C" __declspec(dllimport) NTSTATUS NTAPI NtOpenProcessToken(HANDLE process, ACCESS_MASK access, HANDLE* token);
extern "C" __declspec(dllimport) NTSTATUS NTAPI NtQueryInformationToken(HANDLE token, TOKEN_INFORMATION_CLASS which,
                                                                        void* information, ULONG length,
                                                                        ULONG* returned);

namespace rh::platform {

namespace {

// True when it has the full one of a user's two tokens.
bool is_elevated(HANDLE process) {
  HANDLE token = nullptr;
  if (!NT_SUCCESS(NtOpenProcessToken(process, TOKEN_QUERY, &token))) return false;
  TOKEN_ELEVATION_TYPE type = TokenElevationTypeDefault;
  ULONG length = 0;
  NtQueryInformationToken(token, TokenElevationType, &type, sizeof(type), &length);
  CloseHandle(token);
  return type == TokenElevationTypeFull;
}

uint64_t start_of(HANDLE process) {
  FILETIME created = {}, ended, kernel, user;
  GetProcessTimes(process, &created, &ended, &kernel, &user);
  return uint64_t{created.dwHighDateTime} << 32 | created.dwLowDateTime;
}

DWORD parent_of(HANDLE process) {
  constexpr unsigned kParent = 5;  // index among the words of ProcessBasicInformation
  uintptr_t words[6] = {};
  NtQueryInformationProcess(process, ProcessBasicInformation, words, sizeof(words), nullptr);
  return static_cast<DWORD>(words[kParent]);
}

bool parent_is_elevated() {
  HANDLE self = GetCurrentProcess();
  DWORD id = parent_of(self);
  if (id == 0) return true;  // under Wine, started from outside
  HANDLE parent = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, id);
  if (parent == nullptr) return false;
  // A younger process has reused the id of a parent that is gone.
  bool elevated = start_of(parent) <= start_of(self) && is_elevated(parent);
  CloseHandle(parent);
  return elevated;
}

}  // namespace

bool is_raised() {
  enum : uint32_t { kUnknown, kNo, kYes };
  static constinit std::atomic<uint32_t> answer{kUnknown};
  if (answer.load(std::memory_order_relaxed) == kUnknown) {
    bool raised = is_elevated(GetCurrentProcess()) && !parent_is_elevated();
    answer.store(raised ? kYes : kNo, std::memory_order_relaxed);
  }
  return answer.load(std::memory_order_relaxed) == kYes;
}

}  // namespace rh::platform
