#include "policies.h"

namespace rh::inject {
namespace {

// As Windows numbers them, with those of their bits that keep something out; what is only audited does not.
struct Policy {
  int number;
  DWORD restrictions;
};

constexpr DWORD kNoNewCode = 1;
constexpr DWORD kGuardedOnly = 4;
constexpr DWORD kSignedOnly = 3;  // by Microsoft, or the store
constexpr DWORD kLocalOnly = 1, kTrustedOnly = 2, kSystemFirst = 4;
constexpr DWORD kShadowStackOnly = 0x20, kContinuationsOnly = 0x40;

constexpr Policy kDynamicCode = {2, kNoNewCode};
constexpr Policy kControlFlowGuard = {7, kGuardedOnly};
constexpr Policy kSignature = {8, kSignedOnly};
constexpr Policy kImageLoad = {10, kLocalOnly | kTrustedOnly | kSystemFirst};
constexpr Policy kShadowStack = {15, kShadowStackOnly | kContinuationsOnly};
constexpr Policy kAll[] = {kDynamicCode, kControlFlowGuard, kSignature, kImageLoad, kShadowStack};

// False when it is not told. Windows 7 has no policies; later ones do not know all of them.
bool take_restrictions(HANDLE process, const Policy& policy, DWORD& restrictions) {
  using GetPolicy = BOOL(WINAPI*)(HANDLE, int, void*, SIZE_T);
  const auto get = reinterpret_cast<GetPolicy>(
      reinterpret_cast<void*>(GetProcAddress(GetModuleHandleW(L"kernel32.dll"), "GetProcessMitigationPolicy")));
  restrictions = 0;
  if (get == nullptr) return true;
  DWORD bits = 0;
  if (!get(process, policy.number, &bits, sizeof bits)) return false;
  restrictions = bits & policy.restrictions;
  return true;
}

DWORD restrictions_of(HANDLE process, const Policy& policy) {
  DWORD restrictions = 0;
  take_restrictions(process, policy, restrictions);
  return restrictions;
}

bool restricted_alike_by(const Policy& policy, HANDLE one, HANDLE other) {
  DWORD of_one = 0, of_other = 0;
  const bool told = take_restrictions(one, policy, of_one);
  return told == take_restrictions(other, policy, of_other) && of_one == of_other;
}

// \\server\share\…, \\?\UNC\server\…, or a drive that is one.
bool is_remote(const wchar_t* path) {
  if (path[0] == L'\\' && path[1] == L'\\')
    return (path[2] != L'?' && path[2] != L'.') || (path[3] == L'\\' && path[4] == L'U' && path[5] == L'N');
  const wchar_t root[] = {path[0], L':', L'\\', 0};
  return path[1] == L':' && GetDriveTypeW(root) == DRIVE_REMOTE;
}

}  // namespace

bool restricted_alike(HANDLE one, HANDLE other) {
  for (const Policy& policy : kAll)
    if (!restricted_alike_by(policy, one, other)) return false;
  return true;
}

Obstacle forbids_any(HANDLE process) {
  if (restrictions_of(process, kSignature) != 0) return Obstacle::signed_only;
  return restrictions_of(process, kDynamicCode) != 0 ? Obstacle::no_new_code : Obstacle::none;
}

Obstacle forbids(HANDLE process, const LibraryFile& file, const wchar_t* path) {
  if (restrictions_of(process, kControlFlowGuard) != 0 && !file.guarded) return Obstacle::guarded_only;
  // No build of ours lists where exceptions are continued.
  const DWORD stacks = restrictions_of(process, kShadowStack);
  if ((stacks & kContinuationsOnly) != 0 || (stacks != 0 && !file.for_shadow_stacks))
    return Obstacle::shadow_stack_only;
  const bool local_only = (restrictions_of(process, kImageLoad) & kLocalOnly) != 0;
  return local_only && is_remote(path) ? Obstacle::local_only : Obstacle::none;
}

}  // namespace rh::inject
