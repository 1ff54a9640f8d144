#include "support/library.h"

#include <windows.h>

#include <cstring>

#include "support/windows/linked_names.h"

namespace contract {
namespace {

std::string path_of(HMODULE module) {
  char path[MAX_PATH];
  return GetModuleFileNameA(module, path, sizeof path) ? path : "";
}

HMODULE module_of(const void* address) {
  HMODULE module = nullptr;
  GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                     static_cast<const char*>(address), &module);
  return module;
}

}  // namespace

std::string real_path(const std::string& path) {
  char whole[MAX_PATH];
  const DWORD length = GetFullPathNameA(path.c_str(), sizeof whole, whole, nullptr);
  return length > 0 && length < sizeof whole ? whole : "";
}

// The names of a static library are not exported, so the program brings a table of them.
void* find_name(const char* name) {
  for (const LinkedName& linked : linked_names())
    if (std::strcmp(linked.name, name) == 0) return linked.address;
  const HMODULE library = GetModuleHandleA("reheap.dll");
  return library ? reinterpret_cast<void*>(GetProcAddress(library, name)) : nullptr;
}

std::string expected_server() { return path_of(mode() == Mode::archive ? nullptr : GetModuleHandleA("reheap.dll")); }

std::string server_of(const void* function) {
  const HMODULE module = function ? module_of(function) : nullptr;
  return module ? path_of(module) : "";
}

}  // namespace contract
