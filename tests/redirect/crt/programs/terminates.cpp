// Programs that end themselves by TerminateProcess, of which no DLL is told: reheap.dll writes the statistics all the
// same, if they were asked for, and without that leaves TerminateProcess as it is.
//
//   terminates         starts itself in each way of the table at the end
//   terminates WAY     ends that way
#include <windows.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace {

constexpr unsigned kCode = 7, kNotSo = 8;
constexpr const char* kStatistics = "statistics.json";

HMODULE load() { return LoadLibraryA("reheap.dll"); }

// Beside threads that allocate. What is written shows that somebody did.
void work() {
  static std::atomic<int> at_work{0};
  for (int at = 0; at < 4; ++at) {
    std::thread([at] {
      ++at_work;
      for (size_t size = 1;; size = size * 5 % 20011 + 1) free(malloc(size + static_cast<size_t>(at)));
    }).detach();
  }
  while (at_work < 4) Sleep(1);
}

[[noreturn]] void end(HANDLE process) {
  TerminateProcess(process, kCode);
  exit(kNotSo);
}

void by_the_current() {
  load();
  work();
  end(GetCurrentProcess());
}

void by_its_id() {
  load();
  work();
  end(OpenProcess(PROCESS_TERMINATE | PROCESS_QUERY_LIMITED_INFORMATION, FALSE, GetCurrentProcessId()));
}

void in_a_thread() {
  load();
  work();
  std::thread([] { end(GetCurrentProcess()); }).join();
}

void after_another_failed() {
  load();
  work();
  SetLastError(0);
  if (TerminateProcess(nullptr, 1) || GetLastError() != ERROR_INVALID_HANDLE) exit(kNotSo);
  end(GetCurrentProcess());
}

// A block that was freed twice. The heap says so, and ends the process.
void by_a_crime() {
  HMODULE reheap = load();
  auto* rh_malloc = reinterpret_cast<void* (*)(size_t)>(reinterpret_cast<void*>(GetProcAddress(reheap, "rh_malloc")));
  auto* rh_free = reinterpret_cast<void (*)(void*)>(reinterpret_cast<void*>(GetProcAddress(reheap, "rh_free")));
  void* block = rh_malloc(1 << 20);
  rh_free(block);
  rh_free(block);
  exit(kNotSo);
}

bool terminate_is_as_before(bool load_it) {
  const void* code =
      reinterpret_cast<const void*>(GetProcAddress(GetModuleHandleA("kernelbase.dll"), "TerminateProcess"));
  unsigned char before[16];
  memcpy(before, code, sizeof before);
  if (load_it) load();
  return memcmp(before, code, sizeof before) == 0;
}

void unasked() {
  SetEnvironmentVariableA("REHEAP_STATS", nullptr);
  if (!terminate_is_as_before(true)) exit(kNotSo);
  work();
  end(GetCurrentProcess());
}

void asked() {
  if (terminate_is_as_before(true)) exit(kNotSo);
  end(GetCurrentProcess());
}

// ---- the other side -------------------------------------------------------------------------------

struct Way {
  const char* name;
  void (*end)();
  bool written;
  bool by_the_heap;  // with a code of its own
};

constexpr Way kWays[] = {
    {"by_the_current", by_the_current, true, false},
    {"by_its_id", by_its_id, true, false},
    {"in_a_thread", in_a_thread, true, false},
    {"after_another_failed", after_another_failed, true, false},
    {"by_a_crime", by_a_crime, true, true},
    {"asked", asked, true, false},
    {"unasked", unasked, false, false},
};

std::string statistics() {
  std::string text;
  if (FILE* file = fopen(kStatistics, "rb")) {
    char part[4096];
    for (size_t length; (length = fread(part, 1, sizeof part, file)) != 0;) text.append(part, length);
    fclose(file);
  }
  return text;
}

PROCESS_INFORMATION start(const std::string& way) {
  char program[MAX_PATH];
  GetModuleFileNameA(nullptr, program, MAX_PATH);
  std::string line = "terminates " + way;
  STARTUPINFOA startup = {};
  startup.cb = sizeof startup;
  PROCESS_INFORMATION made = {};
  CreateProcessA(program, line.data(), nullptr, nullptr, FALSE, 0, nullptr, nullptr, &startup, &made);
  return made;
}

bool ends_well(const Way& way) {
  DeleteFileA(kStatistics);
  const HANDLE process = start(way.name).hProcess;
  const bool ended = WaitForSingleObject(process, 30'000) == WAIT_OBJECT_0;
  DWORD code = 0;
  GetExitCodeProcess(process, &code);
  const bool as_it_should = way.by_the_heap ? code != 0 && code != kNotSo : code == kCode;
  const std::string text = statistics();
  const bool whole =
      text.find("\"slow_paths\":{\"refill\":") != std::string::npos && text.rfind("}\n") == text.size() - 2;
  const bool well = ended && as_it_should && (way.written ? whole : text.empty());
  if (!well) fprintf(stderr, "%s: ended %d, code %lx, statistics: %s\n", way.name, ended, code, text.c_str());
  return well;
}

// Another process's end is none of ours.
bool ends_another() {
  DeleteFileA(kStatistics);
  const PROCESS_INFORMATION other = start("sleeps");
  load();
  const bool done = TerminateProcess(other.hProcess, kCode) != 0;
  WaitForSingleObject(other.hProcess, 30'000);
  DWORD code = 0;
  GetExitCodeProcess(other.hProcess, &code);
  const bool well = done && code == kCode && statistics().empty();
  if (!well) fprintf(stderr, "another: done %d, code %lx\n", done, code);
  return well;
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 2) {
    for (const Way& way : kWays)
      if (strcmp(arguments[1], way.name) == 0) way.end();
    Sleep(60'000);
    return kNotSo;
  }
  SetEnvironmentVariableA("REHEAP_STATS", kStatistics);
  unsigned failures = 0;
  for (const Way& way : kWays) failures += !ends_well(way);
  failures += !ends_another();
  fprintf(stderr, "terminates: %u failed\n", failures);
  return failures == 0 ? 0 : 1;
}
