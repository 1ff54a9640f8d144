#include "support/process.h"

#include <windows.h>

#include <psapi.h>
#include <tlhelp32.h>

namespace contract {
namespace {

PROCESS_MEMORY_COUNTERS memory() {
  PROCESS_MEMORY_COUNTERS counters = {};
  counters.cb = sizeof counters;
  GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters);
  return counters;
}

}  // namespace

std::size_t resident() { return memory().WorkingSetSize; }
std::size_t peak_resident() { return memory().PeakWorkingSetSize; }
std::uint64_t process_id() { return GetCurrentProcessId(); }

int threads() {
  const HANDLE all = CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0);
  THREADENTRY32 entry = {};
  entry.dwSize = sizeof entry;
  int count = 0;
  for (BOOL more = Thread32First(all, &entry); more; more = Thread32Next(all, &entry))
    count += entry.th32OwnerProcessID == GetCurrentProcessId();
  CloseHandle(all);
  return count;
}

double seconds() {
  LARGE_INTEGER now = {};
  LARGE_INTEGER each = {};
  QueryPerformanceCounter(&now);
  QueryPerformanceFrequency(&each);
  return static_cast<double>(now.QuadPart) / static_cast<double>(each.QuadPart);
}

void nap(double duration) { Sleep(static_cast<DWORD>(duration * 1000 + 0.999)); }

}  // namespace contract
