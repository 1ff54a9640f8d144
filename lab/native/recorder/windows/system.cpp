// stream/system.h on Windows: the trace file and its chunks. Of the system, kernel32 and ntdll alone, which are there
// before any other DLL of the process.

#include "stream/system.h"

#include <windows.h>
#include <winternl.h>

#include <cpuid.h>

#include <cstring>
#include <initializer_list>

#include "settings.h"
#include "stream/clock.h"
#include "thread_slot.h"

namespace recorder {
namespace {

// Views begin at multiples of this, so the first chunk does.
constexpr uint64_t kGranularity = 65536;
static_assert(trace::kChunkBytes % kGranularity == 0);

// Windows counts the time in 100 ns from 1601.
constexpr uint64_t kUnixEpoch = 116'444'736'000'000'000;

constinit HANDLE g_file = INVALID_HANDLE_VALUE;

void say(const char* what) {
  for (const char* part : {"reheap record: ", what, "\n"}) {
    DWORD written = 0;
    WriteFile(GetStdHandle(STD_ERROR_HANDLE), part, static_cast<DWORD>(std::strlen(part)), &written, nullptr);
  }
}

HANDLE create(const wchar_t* path) {
  return CreateFileW(path, GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ, nullptr, CREATE_NEW, FILE_ATTRIBUTE_NORMAL,
                     nullptr);
}

bool is_there() { return GetLastError() == ERROR_FILE_EXISTS || GetLastError() == ERROR_ALREADY_EXISTS; }

// The first process of a recording makes the file of that name, those it starts one with their number in it.
HANDLE create_file() {
  const Settings& asked = settings();
  HANDLE file = create(asked.path);
  if (file != INVALID_HANDLE_VALUE || !is_there() || !asked.children) return file;
  wchar_t name[kLongestPath];
  for (unsigned count = 0; count != 10000; ++count) {
    name_of_child(name, asked.path, GetCurrentProcessId(), count);
    file = create(name);
    if (file != INVALID_HANDLE_VALUE || !is_there()) return file;
  }
  return INVALID_HANDLE_VALUE;
}

// The file grows to hold it. What is written lives on when the process is killed.
void* map_part(uint64_t offset, size_t bytes) {
  const uint64_t end = offset + bytes;
  const HANDLE whole = CreateFileMappingW(g_file, nullptr, PAGE_READWRITE, static_cast<DWORD>(end >> 32),
                                          static_cast<DWORD>(end), nullptr);
  if (whole == nullptr) return nullptr;
  void* part =
      MapViewOfFile(whole, FILE_MAP_WRITE, static_cast<DWORD>(offset >> 32), static_cast<DWORD>(offset), bytes);
  const DWORD error = GetLastError();
  CloseHandle(whole);
  SetLastError(error);
  return part;
}

uint64_t parent() {
  PROCESS_BASIC_INFORMATION info = {};
  NtQueryInformationProcess(GetCurrentProcess(), ProcessBasicInformation, &info, sizeof info, nullptr);
  return reinterpret_cast<uint64_t>(info.InheritedFromUniqueProcessId);
}

// The command line as it was given stands for the list of arguments: what splits it up is the program's own C runtime.
void describe_process(trace::FileHeader& header) {
  header.header_bytes = kGranularity;
  header.page_bytes = 4096;
  header.process = GetCurrentProcessId();
  header.parent = parent();
  std::strcpy(header.system, "windows");
  header.flags |= settings().layers;
  const int bytes = WideCharToMultiByte(CP_UTF8, 0, GetCommandLineW(), -1, header.command,
                                        static_cast<int>(sizeof header.command) - 1, nullptr, nullptr);
  header.command_bytes = static_cast<uint32_t>(bytes);
}

}  // namespace

uint64_t monotonic_nanoseconds() {
  LARGE_INTEGER count, frequency;
  QueryPerformanceCounter(&count);
  QueryPerformanceFrequency(&frequency);
  const auto whole = static_cast<uint64_t>(count.QuadPart / frequency.QuadPart);
  const auto rest = static_cast<uint64_t>(count.QuadPart % frequency.QuadPart);
  return whole * 1'000'000'000 + rest * 1'000'000'000 / static_cast<uint64_t>(frequency.QuadPart);
}

namespace system {

bool ready() { return true; }

bool even_counter() {
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && (edx & 1u << 8);
}

uint64_t time_of_day_nanoseconds() {
  FILETIME now;
  GetSystemTimeAsFileTime(&now);
  return ((uint64_t{now.dwHighDateTime} << 32 | now.dwLowDateTime) - kUnixEpoch) * 100;
}

uint64_t cpu_nanoseconds() {
  FILETIME began, ended, kernel, user;
  if (!GetProcessTimes(GetCurrentProcess(), &began, &ended, &kernel, &user)) return 0;
  const auto units = [](const FILETIME& time) { return uint64_t{time.dwHighDateTime} << 32 | time.dwLowDateTime; };
  return (units(kernel) + units(user)) * 100;
}

uint64_t process_id() { return GetCurrentProcessId(); }

// None: nothing here follows the frames.
StackSource stack_source() { return {}; }

void* memory_of_this_process(size_t bytes) {
  return VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

trace::FileHeader* open_trace() {
  if (settings().path[0] == 0) return nullptr;
  g_file = create_file();
  if (g_file == INVALID_HANDLE_VALUE) {
    if (!is_there() || settings().children) say("not recorded: cannot create the trace file");
    return nullptr;
  }
  auto* header = static_cast<trace::FileHeader*>(map_part(0, kGranularity));
  if (header == nullptr) {
    say("not recorded: cannot write the trace file");
    return nullptr;
  }
  describe_process(*header);
  return header;
}

uint64_t limit() { return settings().limit; }

Chunk map_chunk(uint64_t offset) {
  void* memory = map_part(offset, trace::kChunkBytes);
  const bool full = GetLastError() == ERROR_DISK_FULL || GetLastError() == ERROR_HANDLE_DISK_FULL;
  return {memory, full ? trace::Stopped::kDiskFull : trace::Stopped::kFailed};
}

void unmap_chunk(void* memory) { UnmapViewOfFile(memory); }

void say_stopped(trace::Stopped reason) {
  switch (reason) {
  case trace::Stopped::kNot: return;
  case trace::Stopped::kLimit: return say("the trace reached its size limit; the rest is not recorded");
  case trace::Stopped::kDiskFull: return say("no room left on the disk; the rest is not recorded");
  case trace::Stopped::kFailed: return say("cannot go on with the trace; the rest is not recorded");
  }
}

uint64_t fork_ticks() { return 0; }

void yield() { SwitchToThread(); }

// DllMain hears of every thread's end.
void watch_thread() {}

// What the system allocates for the recorder is not the program's.
Quiet::Quiet() : saved_{GetLastError(), thread_slot().call, 0} {
  if (saved_[1] != kAlwaysInside) thread_slot().call = kAlwaysInside;
}
Quiet::~Quiet() {
  if (saved_[1] != kAlwaysInside) thread_slot().call = static_cast<uintptr_t>(saved_[1]);
  SetLastError(static_cast<DWORD>(saved_[0]));
}

}  // namespace system
}  // namespace recorder
