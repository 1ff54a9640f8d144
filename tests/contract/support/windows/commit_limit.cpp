// A commit limit for systems that do not enforce a job's (Wine): counts what this program's own code requests from the
// system, and refuses requests beyond the limit. Functions are replaced in the import tables of the program and of
// reheap.dll.
#include <windows.h>

#include <cstdlib>
#include <cstring>

#include "support/process.h"
#include "support/scenario.h"

namespace contract {
namespace {

// The system's own functions: this file's imports are replaced too.
decltype(&VirtualAlloc) real_alloc = nullptr;
decltype(&VirtualFree) real_free = nullptr;

std::size_t most = 0;
std::size_t committed = 0;

class Guard {
 public:
  Guard() { AcquireSRWLockExclusive(&lock); }
  ~Guard() { ReleaseSRWLockExclusive(&lock); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  static inline SRWLOCK lock = SRWLOCK_INIT;
};

// Committed bytes in the range. `size` 0: up to the end of the reservation.
std::size_t committed_in(void* address, std::size_t size) {
  std::size_t sum = 0;
  auto* at = static_cast<char*>(address);
  MEMORY_BASIC_INFORMATION part = {};
  while (VirtualQuery(at, &part, sizeof part) != 0 && part.State != MEM_FREE) {
    if (size == 0 && part.AllocationBase != address) break;
    auto* end = static_cast<char*>(part.BaseAddress) + part.RegionSize;
    const auto seen = static_cast<std::size_t>(end - at);
    const std::size_t within = size != 0 && seen > size ? size : seen;
    if (part.State == MEM_COMMIT) sum += within;
    if (size != 0 && (size -= within) == 0) break;
    at = end;
  }
  return sum;
}

void* WINAPI counted_alloc(void* address, SIZE_T size, DWORD kind, DWORD protection) {
  const Guard guard;
  std::size_t more = 0;
  if (kind & MEM_COMMIT) more = address ? size - committed_in(address, size) : size;
  if (committed + more > most) {
    SetLastError(ERROR_COMMITMENT_LIMIT);
    return nullptr;
  }
  void* const got = real_alloc(address, size, kind, protection);
  if (got) committed += more;
  return got;
}

BOOL WINAPI counted_free(void* address, SIZE_T size, DWORD kind) {
  const Guard guard;
  const std::size_t less = committed_in(address, size);
  const BOOL done = real_free(address, size, kind);
  if (done) committed -= less;
  return done;
}

template <class T> T* at_offset(HMODULE module, DWORD offset) {
  return reinterpret_cast<T*>(reinterpret_cast<char*>(module) + offset);
}

void replace(ULONG_PTR* slot, ULONG_PTR function) {
  DWORD before = 0;
  VirtualProtect(slot, sizeof *slot, PAGE_READWRITE, &before);
  *slot = function;
  VirtualProtect(slot, sizeof *slot, before, &before);
}

// Returns how many imports of that name were replaced.
int replace_import(HMODULE module, const char* name, void* function) {
  const auto* dos = at_offset<IMAGE_DOS_HEADER>(module, 0);
  const auto* headers = at_offset<IMAGE_NT_HEADERS>(module, static_cast<DWORD>(dos->e_lfanew));
  const DWORD imports = headers->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_IMPORT].VirtualAddress;
  int replaced = 0;
  for (auto* from = at_offset<IMAGE_IMPORT_DESCRIPTOR>(module, imports); from->Name; ++from) {
    auto* names = at_offset<IMAGE_THUNK_DATA>(module, from->OriginalFirstThunk);
    auto* slots = at_offset<IMAGE_THUNK_DATA>(module, from->FirstThunk);
    for (; names->u1.AddressOfData; ++names, ++slots) {
      if (IMAGE_SNAP_BY_ORDINAL(names->u1.Ordinal)) continue;
      const auto* import = at_offset<IMAGE_IMPORT_BY_NAME>(module, static_cast<DWORD>(names->u1.AddressOfData));
      if (std::strcmp(reinterpret_cast<const char*>(import->Name), name) != 0) continue;
      replace(&slots->u1.Function, reinterpret_cast<ULONG_PTR>(function));
      ++replaced;
    }
  }
  return replaced;
}

bool system_enforces() {
  void* const beyond = VirtualAlloc(nullptr, most, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (!beyond) return true;
  VirtualFree(beyond, 0, MEM_RELEASE);
  return false;
}

}  // namespace

std::size_t memory_limit() {
  const char* text = std::getenv("CONTRACT_COMMIT_LIMIT");
  return text ? static_cast<std::size_t>(std::strtoull(text, nullptr, 10)) : 0;
}

void enforce_limits() {
  most = memory_limit();
  if (most == 0 || system_enforces()) return;
  real_alloc = VirtualAlloc;
  real_free = VirtualFree;
  const HMODULE library = GetModuleHandleA("reheap.dll");
  const HMODULE module = library ? library : GetModuleHandleA(nullptr);
  NEED(replace_import(module, "VirtualAlloc", reinterpret_cast<void*>(&counted_alloc)) > 0);
  NEED(replace_import(module, "VirtualFree", reinterpret_cast<void*>(&counted_free)) > 0);
}

}  // namespace contract
