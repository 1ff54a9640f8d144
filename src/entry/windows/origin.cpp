#include "entry/origin.h"

#include "platform/windows/system.h"
#include "reheap/reheap.h"

namespace rh::origin {

Path library_of(const void* address) {
  Path path;
  platform::KeepLastError keep;
  HMODULE module = nullptr;
  constexpr DWORD kFlags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
  wchar_t wide[Path::kMost];
  if (!GetModuleHandleExW(kFlags, static_cast<LPCWSTR>(address), &module)) return path;
  DWORD length = GetModuleFileNameW(module, wide, Path::kMost);
  if (length == 0 || length >= Path::kMost) return path;
  if (WideCharToMultiByte(CP_UTF8, 0, wide, -1, path.text, Path::kMost, nullptr, nullptr) == 0) path.text[0] = 0;
  return path;
}

// In a program that linked this library every name of the C runtime's is ours.
Path malloc_server() { return library_of(reinterpret_cast<const void*>(&rh_malloc)); }

}  // namespace rh::origin
