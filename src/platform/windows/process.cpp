// The process: clock, environment, files, its end.
#include <atomic>

#include "base/bits.h"
#include "platform/platform.h"
#include "platform/refusal.h"
#include "platform/windows/system.h"

namespace rh::platform {

namespace {

// Longest name or path accepted; longer ones are treated as absent.
constexpr int kMostText = 512;

struct Wide {
  wchar_t text[kMostText];
};

bool widen(const char* text, Wide* wide) {
  return MultiByteToWideChar(CP_UTF8, 0, text, -1, wide->text, kMostText) != 0;
}

bool write_all(HANDLE file, const char* text, size_t length) {
  while (length != 0) {
    DWORD part = length < 0x10000 ? static_cast<DWORD>(length) : 0x10000, written = 0;
    if (!WriteFile(file, text, part, &written, nullptr) || written == 0) return false;
    text += written;
    length -= written;
  }
  return true;
}

// When it is longer than `to`, reads its beginning.
bool read_beginning(const Wide& name, DWORD length, Wide* to) {
  const size_t size = length * sizeof(wchar_t);
  void* memory = VirtualAlloc(nullptr, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (memory == nullptr) return false;
  auto* whole = static_cast<wchar_t*>(memory);
  const DWORD written = GetEnvironmentVariableW(name.text, whole, length);
  const bool read = written != 0 && written < length;
  if (read) {
    __builtin_memcpy(to->text, whole, sizeof to->text);
    to->text[kMostText - 1] = 0;
  }
  VirtualFree(memory, 0, MEM_RELEASE);
  return read;
}

}  // namespace

uint64_t now_ms() { return GetTickCount64(); }

// Asked for no more than whether there is more than one, where there is not.
unsigned node() {
  static constinit std::atomic<int> several{-1};
  int known = several.load(std::memory_order_relaxed);
  if (known < 0) {
    ULONG highest = 0;
    KeepLastError keep;
    known = GetNumaHighestNodeNumber(&highest) && highest != 0;
    several.store(known, std::memory_order_relaxed);
  }
  if (known == 0) return 0;
  KeepLastError keep;
  PROCESSOR_NUMBER processor = {};
  USHORT node = 0;
  GetCurrentProcessorNumberEx(&processor);
  return GetNumaProcessorNodeEx(&processor, &node) ? node % kMostNodes : 0;
}

uint64_t random_seed() {
  LARGE_INTEGER ticks = {};
  QueryPerformanceCounter(&ticks);
  FILETIME time = {};
  GetSystemTimeAsFileTime(&time);
  uint64_t seed = mix(static_cast<uint64_t>(ticks.QuadPart) ^ process_id() << 32);
  // The addresses of the stack and the libraries are random too.
  seed = mix(seed ^ address_of(&ticks)) ^ reinterpret_cast<uintptr_t>(&GetTickCount64);
  return mix(seed ^ time.dwLowDateTime);
}

uint64_t random_secret() { return random_seed(); }

// What is owned is in no list of a thread's.
bool image_may_go() { return false; }

uintptr_t image_address() { return reinterpret_cast<uintptr_t>(GetModuleHandleW(nullptr)); }

uint64_t process_id() { return GetCurrentProcessId(); }

// Valid until the next call. A value too long for any option is truncated; the result is still too long, and the caller
// says so.
const char* environment(const char* name) {
  KeepLastError keep;
  if (is_raised()) return nullptr;
  constexpr int kMostBytes = 3;  // one UTF-16 unit in UTF-8
  static char value[kMostText * kMostBytes];
  Wide wide_name, wide_value;
  if (!widen(name, &wide_name)) return nullptr;
  DWORD length = GetEnvironmentVariableW(wide_name.text, wide_value.text, kMostText);
  if (length == 0) return nullptr;
  if (length >= kMostText && !read_beginning(wide_name, length, &wide_value)) return nullptr;
  int written = WideCharToMultiByte(CP_UTF8, 0, wide_value.text, -1, value, sizeof value, nullptr, nullptr);
  return written == 0 ? nullptr : value;
}

void each_variable(void (*visit)(const char* entry)) {
  KeepLastError keep;
  wchar_t* all = is_raised() ? nullptr : GetEnvironmentStringsW();
  if (all == nullptr) return;
  for (const wchar_t* wide = all; *wide != 0; wide += lstrlenW(wide) + 1) {
    char entry[kMostText];
    int length = 0;
    for (bool name = true; length < kMostText - 1 && wide[length] != 0; ++length) {
      wchar_t character = wide[length];
      name = name && character != '=';
      // Names are case-insensitive there.
      bool small = name && character >= 'a' && character <= 'z';
      entry[length] = character > 0x7e ? '?' : static_cast<char>(small ? character - 32 : character);
    }
    entry[length] = 0;
    visit(entry);
  }
  FreeEnvironmentStringsW(all);
}

void write_error(const char* text, size_t length) {
  KeepLastError keep;
  HANDLE file = GetStdHandle(STD_ERROR_HANDLE);
  if (file != nullptr && file != INVALID_HANDLE_VALUE) write_all(file, text, length);
}

static const char* refusal_of(DWORD error) {
  switch (error) {
  case ERROR_FILE_NOT_FOUND:
  case ERROR_PATH_NOT_FOUND: return refusal(ENOENT);
  case ERROR_ACCESS_DENIED: return refusal(EACCES);
  case ERROR_SHARING_VIOLATION: return "cannot be written: another program has it open";
  case ERROR_INVALID_NAME: return "cannot be written: that is no file's name";
  case ERROR_FILENAME_EXCED_RANGE: return refusal(ENAMETOOLONG);
  case ERROR_WRITE_PROTECT: return refusal(EROFS);
  case ERROR_DISK_FULL:
  case ERROR_HANDLE_DISK_FULL: return refusal(ENOSPC);
  default: return kRefused;
  }
}

FileWriter::FileWriter(const char* path, How how) {
  KeepLastError keep;
  Wide wide;
  if (!widen(path, &wide)) {
    refusal_ = refusal_of(ERROR_INVALID_NAME);
    return;
  }
  const bool replaces = how == How::replace;
  handle_ = reinterpret_cast<intptr_t>(CreateFileW(
      wide.text, replaces ? GENERIC_WRITE : FILE_APPEND_DATA, FILE_SHARE_READ | (replaces ? 0 : FILE_SHARE_WRITE),
      nullptr, replaces ? CREATE_ALWAYS : OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL, nullptr));
  if (!is_open()) refusal_ = refusal_of(GetLastError());
}

FileWriter::~FileWriter() {
  KeepLastError keep;
  if (is_open()) CloseHandle(reinterpret_cast<HANDLE>(handle_));
}

void FileWriter::write(const char* text, size_t length) {
  KeepLastError keep;
  if (is_whole() && !write_all(reinterpret_cast<HANDLE>(handle_), text, length)) refusal_ = refusal_of(GetLastError());
}

bool may_listen(uint64_t) { return false; }

bool listen(uint64_t, void (*)()) { return false; }

void abort_process() {
  if (IsDebuggerPresent()) DebugBreak();
  // Ends the process at once, with a crash report where the system makes them; none of the program's handlers runs on a
  // heap that cannot be trusted.
  constexpr DWORD kHeapCorruption = 0xc0000374;  // STATUS_HEAP_CORRUPTION, by which Windows' own heap ends a program
  EXCEPTION_RECORD record = {};
  record.ExceptionCode = kHeapCorruption;
  record.ExceptionFlags = EXCEPTION_NONCONTINUABLE;
  record.ExceptionAddress = __builtin_return_address(0);
  RaiseFailFastException(&record, nullptr, 0);
  end_process(static_cast<int>(kHeapCorruption));
}

void end_process(int code) {
  TerminateProcess(GetCurrentProcess(), static_cast<UINT>(code));
  for (;;) Sleep(INFINITE);
}

}  // namespace rh::platform
