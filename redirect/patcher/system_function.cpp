#include "system_function.h"

#include <windows.h>

#include "code_memory.h"
#include "image.h"
#include "patch.h"

namespace rh::redirect {

namespace {

const void* home_of(const char* name) {
  const HMODULE base = GetModuleHandleW(L"kernelbase.dll");
  const bool there = base != nullptr && GetProcAddress(base, name) != nullptr;
  return there ? base : GetModuleHandleW(L"kernel32.dll");
}

}  // namespace

const char* replace_system_function(const char* name, const void* replacement, const void** original) {
  const Image home(home_of(name));
  uint8_t* entry = home.valid() ? home.function(name) : nullptr;
  if (entry == nullptr) return "is not exported";
  entry = follow_jumps(entry, home.whole());
  CodeMemory memory;
  Patch patch;
  if (!memory.open_near(home.whole())) return "has no free memory near it";
  const char* problem = prepare(home.extent(entry), replacement, memory, &patch);
  if (problem == nullptr && !memory.seal()) problem = "lies in a process that forbids new code";
  if (problem == nullptr) {
    *original = patch.original;
    problem = commit(&patch, 1);
  }
  if (problem != nullptr) memory.release();
  return problem;
}

}  // namespace rh::redirect
