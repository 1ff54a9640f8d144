#include "proof.h"

#include "inject.h"
#include "policies.h"

// Of ntdll.
extern "C" {
__declspec(dllimport) LONG NTAPI NtOpenProcessToken(HANDLE process, ACCESS_MASK access, HANDLE* token);
__declspec(dllimport) LONG NTAPI NtQueryInformationToken(HANDLE token, TOKEN_INFORMATION_CLASS what, void* to,
                                                         ULONG length, ULONG* needed);
}

namespace rh::inject {
namespace {

constexpr size_t kMachines = 3;
constinit SRWLOCK g_lock = SRWLOCK_INIT;
constinit Kind g_shown[kMachines] = {};

// Whose rights a process has. The session of its user has drives of its own; what is set apart in a container sees few
// files.
struct Rights {
  LUID user_session, last_change;
  DWORD contained;

  bool operator==(const Rights& other) const {
    return equal(user_session, other.user_session) && equal(last_change, other.last_change) &&
           contained == other.contained;
  }

 private:
  static bool equal(const LUID& one, const LUID& other) {
    return one.LowPart == other.LowPart && one.HighPart == other.HighPart;
  }
};

bool take_rights(HANDLE token, Rights& rights) {
  TOKEN_STATISTICS statistics;
  ULONG length = 0;
  if (NtQueryInformationToken(token, TokenStatistics, &statistics, sizeof statistics, &length) != 0) return false;
  rights = {statistics.AuthenticationId, statistics.ModifiedId, 0};
  // Windows 7 has no containers, and does not know the question.
  NtQueryInformationToken(token, TokenIsAppContainer, &rights.contained, sizeof rights.contained, &length);
  return true;
}

bool rights_of(HANDLE process, Rights& rights) {
  HANDLE token = nullptr;
  if (NtOpenProcessToken(process, TOKEN_QUERY, &token) != 0) return false;
  const bool told = take_rights(token, rights);
  CloseHandle(token);
  return told;
}

bool has_own_rights(HANDLE process) {
  Rights own, its;
  return rights_of(GetCurrentProcess(), own) && rights_of(process, its) && own == its &&
         restricted_alike(GetCurrentProcess(), process);
}

// The library that a process would get, and its machine; 0 when there is none.
WORD library_of(HANDLE process, const wchar_t* library, Path& path) {
  if (out_of_reach(process)) {
    constexpr WORD wide[] = {IMAGE_FILE_MACHINE_AMD64, pe::machine_arm64};
    for (const WORD machine : wide)
      if (library_for(machine, library, path)) return machine;
    return 0;
  }
  pe::Image image;
  if (!pe::main_image(process, image)) return 0;
  return library_for(image.machine, library, path) ? image.machine : WORD{0};
}

}  // namespace

Kind kind_of(HANDLE process, const wchar_t* library) {
  Kind kind;
  Path path;
  kind.machine = library_of(process, library, path);
  if (kind.machine == 0) return kind;
  kind.own_rights = has_own_rights(process);
  kind.library = identity_of(path.text);
  return kind;
}

bool is_shown(const Kind& kind) {
  if (kind.machine == 0 || !kind.own_rights) return false;
  // Held by nobody who waits; who finds it taken tries the library once more.
  if (!TryAcquireSRWLockShared(&g_lock)) return false;
  bool found = false;
  for (const Kind& shown : g_shown) found = found || (shown.machine == kind.machine && shown.library == kind.library);
  ReleaseSRWLockShared(&g_lock);
  return found;
}

void show(const Kind& kind) {
  if (kind.machine == 0 || !kind.own_rights || !TryAcquireSRWLockExclusive(&g_lock)) return;
  for (Kind& shown : g_shown) {
    if (shown.machine != 0 && shown.machine != kind.machine) continue;
    shown = kind;
    break;
  }
  ReleaseSRWLockExclusive(&g_lock);
}

}  // namespace rh::inject
