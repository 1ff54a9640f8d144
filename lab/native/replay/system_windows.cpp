#include "replay/system.h"

#include <cstdio>
#include <cstdlib>
#include <malloc.h>

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <psapi.h>

#include "windows/under_wine.h"

namespace lab::sys {
namespace {

struct Entry {
  void (*run)(void*);
  void* argument;
};

DWORD WINAPI enter(void* at) {
  const Entry entry = *static_cast<Entry*>(at);
  entry.run(entry.argument);
  return 0;
}

PROCESS_MEMORY_COUNTERS memory_counters() {
  PROCESS_MEMORY_COUNTERS counters{};
  counters.cb = sizeof counters;
  K32GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters);
  return counters;
}

std::uint64_t hundreds(const FILETIME& time) { return (std::uint64_t{time.dwHighDateTime} << 32) | time.dwLowDateTime; }

// WaitOnAddress lies in a library that MinGW's import libraries do not all name: asked for by name.
using WaitOnAddressFunction = BOOL(WINAPI*)(volatile void*, void*, SIZE_T, DWORD);
using WakeByAddressAllFunction = void(WINAPI*)(void*);

template <typename Function> Function sync_function(const char* name) {
  const HMODULE library = GetModuleHandleA("kernelbase.dll");
  return library ? reinterpret_cast<Function>(reinterpret_cast<void*>(GetProcAddress(library, name))) : nullptr;
}

const auto g_wait = sync_function<WaitOnAddressFunction>("WaitOnAddress");
const auto g_wake = sync_function<WakeByAddressAllFunction>("WakeByAddressAll");

}  // namespace

bool open_file(const char* path, File& file) {
  const HANDLE handle =
      CreateFileA(path, GENERIC_READ, FILE_SHARE_READ, nullptr, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr);
  file.handle = reinterpret_cast<std::intptr_t>(handle);
  return handle != INVALID_HANDLE_VALUE;
}

std::int64_t read_at(File file, void* to, std::size_t bytes, std::uint64_t offset) {
  OVERLAPPED where{};
  where.Offset = static_cast<DWORD>(offset);
  where.OffsetHigh = static_cast<DWORD>(offset >> 32);
  DWORD got = 0;
  if (!ReadFile(reinterpret_cast<HANDLE>(file.handle), to, static_cast<DWORD>(bytes), &got, &where))
    return GetLastError() == ERROR_HANDLE_EOF ? 0 : -1;
  return got;
}

void* map(std::size_t bytes) {
  void* memory = VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (!memory) {
    std::fprintf(stderr, "reheap-replay: no memory for the replayer's own %llu bytes\n",
                 static_cast<unsigned long long>(bytes));
    ExitProcess(125);
  }
  for (std::size_t at = 0; at < bytes; at += 4096) static_cast<volatile char*>(memory)[at] = 0;
  return memory;
}

void unmap(void* memory, std::size_t) { VirtualFree(memory, 0, MEM_RELEASE); }

unsigned cores() {
  SYSTEM_INFO info;
  GetSystemInfo(&info);
  return info.dwNumberOfProcessors;
}

std::uint64_t now_ns() {
  static const LARGE_INTEGER frequency = [] {
    LARGE_INTEGER value;
    QueryPerformanceFrequency(&value);
    return value;
  }();
  LARGE_INTEGER ticks;
  QueryPerformanceCounter(&ticks);
  const auto count = static_cast<std::uint64_t>(ticks.QuadPart);
  const auto hz = static_cast<std::uint64_t>(frequency.QuadPart);
  return count / hz * 1'000'000'000 + count % hz * 1'000'000'000 / hz;
}

std::uint64_t cpu_ns() {
  FILETIME created, ended, kernel, user;
  if (!GetProcessTimes(GetCurrentProcess(), &created, &ended, &kernel, &user)) return 0;
  return (hundreds(kernel) + hundreds(user)) * 100;
}

// The clock's interrupts, at their rarest; Wine has Linux's hundredths of a second.
std::uint64_t cpu_step_ns() { return under_wine() ? 10'000'000 : 15'625'000; }

void sleep_until(std::uint64_t ns) {
  const std::uint64_t now = now_ns();
  if (ns > now) Sleep(static_cast<DWORD>((ns - now + 999'999) / 1'000'000));
}

std::uint64_t resident_bytes() { return memory_counters().WorkingSetSize; }
std::uint64_t commit_bytes() { return under_wine() ? 0 : memory_counters().PagefileUsage; }
std::uint64_t named_bytes() { return 0; }
bool reset_peak() { return false; }
std::uint64_t peak_resident_bytes() { return memory_counters().PeakWorkingSetSize; }

void wait(std::atomic<std::uint32_t>& word, std::uint32_t value, std::uint64_t ns) {
  if (g_wait)
    g_wait(&word, &value, sizeof value, static_cast<DWORD>((ns + 999'999) / 1'000'000));
  else
    SwitchToThread();
}

void wake(std::atomic<std::uint32_t>& word) {
  if (g_wake) g_wake(&word);
}

void pause() { YieldProcessor(); }

void* allocate_aligned(std::size_t size, std::size_t alignment) { return _aligned_malloc(size, alignment); }

void* reallocate_aligned(void* block, std::size_t size, std::size_t alignment) {
  return _aligned_realloc(block, size, alignment);
}

void free_aligned(void* block) { _aligned_free(block); }

// The system maps the stack here: `stack` holds what the thread begins with.
bool start(Thread& thread, void (*run)(void*), void* argument) {
  thread.stack = map(4096);
  *static_cast<Entry*>(thread.stack) = {run, argument};
  const HANDLE handle = CreateThread(nullptr, sys::kStackBytes, enter, thread.stack, 0, nullptr);
  thread.handle = reinterpret_cast<std::uintptr_t>(handle);
  return handle != nullptr;
}

void join(Thread& thread) {
  WaitForSingleObject(reinterpret_cast<HANDLE>(thread.handle), INFINITE);
  CloseHandle(reinterpret_cast<HANDLE>(thread.handle));
  unmap(thread.stack, 4096);
  thread = {};
}

}  // namespace lab::sys
