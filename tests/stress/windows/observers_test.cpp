// The stress while others stop its threads: a sampling profiler at random moments, a debugger at every event. What is
// stopped goes on, and all contents are as they should be.

#include <windows.h>

#include <tlhelp32.h>
#include <winternl.h>

#include <future>
#include <random>
#include <vector>

#include "driver.h"

namespace heap_stress {
namespace {

// ---- a profiler --------------------------------------------------------------------------------

// The stress that this process has started, by itself or through a launcher; 0: not yet.
DWORD find_stress() {
  const HANDLE all = CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0);
  std::vector<PROCESSENTRY32W> entries;
  PROCESSENTRY32W entry = {};
  entry.dwSize = sizeof entry;
  for (BOOL more = Process32FirstW(all, &entry); more; more = Process32NextW(all, &entry)) entries.push_back(entry);
  CloseHandle(all);
  const DWORD self = GetCurrentProcessId();
  for (const PROCESSENTRY32W& process : entries) {
    if (_wcsicmp(process.szExeFile, L"stress.exe") != 0) continue;
    if (process.th32ParentProcessID == self) return process.th32ProcessID;
    for (const PROCESSENTRY32W& parent : entries)
      if (parent.th32ProcessID == process.th32ParentProcessID && parent.th32ParentProcessID == self)
        return process.th32ProcessID;
  }
  return 0;
}

using GetNextThread = LONG(NTAPI*)(HANDLE process, HANDLE after, ACCESS_MASK access, ULONG attributes, ULONG flags,
                                   HANDLE* next);

std::vector<HANDLE> threads_of(HANDLE process) {
  static const auto next_thread = reinterpret_cast<GetNextThread>(
      reinterpret_cast<void*>(GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "NtGetNextThread")));
  constexpr ACCESS_MASK kAccess = THREAD_SUSPEND_RESUME | THREAD_GET_CONTEXT | THREAD_QUERY_INFORMATION;
  std::vector<HANDLE> threads;
  HANDLE last = nullptr;
  while (next_thread(process, last, kAccess, 0, 0, &last) == 0) threads.push_back(last);
  return threads;
}

struct BasicInformation {
  LONG exit_status;
  void* environment;
  void* process_and_thread[2];
  ULONG_PTR affinity;
  LONG priorities[2];
};

// Under Wine a context cannot be read before a thread has run for the first time: who asks would wait.
bool has_begun(HANDLE thread) {
  BasicInformation information = {};
  NtQueryInformationThread(thread, static_cast<THREADINFOCLASS>(0), &information, sizeof information, nullptr);
  return reinterpret_cast<std::uintptr_t>(information.environment) >= 65536;
}

// Stops threads of a process as a sampling profiler does, at times all of them.
class Profiler {
 public:
  explicit Profiler(DWORD process) : process_(OpenProcess(PROCESS_ALL_ACCESS, FALSE, process)) {}
  ~Profiler() { CloseHandle(process_); }
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  void run() {
    while (WaitForSingleObject(process_, 0) == WAIT_TIMEOUT) {
      sample();
      if (below(4) == 0) Sleep(below(3));
    }
  }

  unsigned stops = 0;
  unsigned positions = 0;  // that could be read

 private:
  void sample() {
    const std::vector<HANDLE> threads = threads_of(process_);
    const bool all = below(8) == 0;
    const std::size_t chosen = below(static_cast<DWORD>(threads.size() + 1));
    std::vector<HANDLE> stopped;
    for (std::size_t at = 0; at < threads.size(); ++at) {
      if (!all && at != chosen) continue;
      if (SuspendThread(threads[at]) != static_cast<DWORD>(-1)) stopped.push_back(threads[at]);
    }
    for (const HANDLE thread : stopped) read_position(thread);
    if (below(4) == 0) Sleep(below(10));
    for (const HANDLE thread : stopped) ResumeThread(thread);
    for (const HANDLE thread : threads) CloseHandle(thread);
    stops += static_cast<unsigned>(stopped.size());
  }

  void read_position(HANDLE thread) {
    CONTEXT context;
    context.ContextFlags = CONTEXT_FULL;
    positions += has_begun(thread) && GetThreadContext(thread, &context);
  }

  DWORD below(DWORD bound) { return static_cast<DWORD>(random_() % bound); }

  const HANDLE process_;
  std::mt19937 random_{std::random_device()()};
};

// Runs the stress and stops its threads until it ends.
void profile(const std::wstring& line) {
  std::future<void> running = std::async(std::launch::async, [&line] { expect_end(line); });
  DWORD found = 0;
  while (found == 0 && running.wait_for(std::chrono::milliseconds(1)) == std::future_status::timeout)
    found = find_stress();
  ASSERT_NE(found, 0u);
  Profiler profiler(found);
  profiler.run();
  running.get();
  std::printf("%u stops, %u positions read\n", profiler.stops, profiler.positions);
  EXPECT_GT(profiler.positions, 50u);
}

std::wstring profiled_seconds() { return setting(L"HEAP_STRESS_SECONDS", L"2"); }

TEST(Profiled, WithBothLayers) { profile(launched() + stress(4, profiled_seconds(), L"both")); }

// Also while functions are being replaced, for which all threads are stopped.
TEST(Profiled, WhileTheyComeLate) { profile(stress(4, profiled_seconds(), L"both") + L" late=" + library_path()); }

// ---- a debugger --------------------------------------------------------------------------------

std::wstring debugger(const wchar_t* form) { return program(L"debugger.exe") + L" " + form + L" "; }

// Wine's 32-bit processes stumble over the breakpoint that greets a debugger, with and without reheap.
class Debugged : public testing::Test {
 private:
  // Else Windows gives processes that are started by a debugger heaps that reheap leaves alone.
  const Variable no_debug_heap_{L"_NO_DEBUG_HEAP", L"1"};

 protected:
  void SetUp() override {
    const Ended plain = start(debugger(L"only") + program(L"generations.exe") + L" 1 1 plain");
    if (plain.code != 1 || plain.output.find("0 exceptions") == std::string::npos)
      GTEST_SKIP() << "a debugger does not work here without reheap either: " << plain.output;
  }
};

// Ended well, with reheap.dll seen so many times, and nothing that a debugger would stop at.
void expect_debugged(const std::wstring& line, const char* said) {
  const Ended ended = start(line);
  EXPECT_EQ(ended.code, 0u) << ended.output << ended.errors;
  EXPECT_NE(ended.output.find(said), std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find("all contents as they should be"), std::string::npos) << ended.output;
  std::fputs(ended.output.c_str(), stdout);
}

TEST_F(Debugged, FromTheStartWithTheLauncher) {
  expect_debugged(debugger(L"all") + launched() + stress(4, L"0.5", L"both"), "1 times reheap.dll, 0 exceptions");
}

TEST_F(Debugged, ByADebuggerThatIsLaunchedItself) {
  expect_debugged(launched() + debugger(L"only") + stress(4, L"0.5", L"both"), "1 times reheap.dll, 0 exceptions");
}

TEST_F(Debugged, WhileTheyComeLate) {
  expect_debugged(debugger(L"only") + stress(4, L"0.5", L"both") + L" late=" + library_path(),
                  "1 times reheap.dll, 0 exceptions");
}

TEST_F(Debugged, ByOneWhoComesAndGoes) {
  expect_debugged(debugger(L"attach") + stress(4, L"1.5", L"both") + L" late=" + library_path(), "0 exceptions");
}

}  // namespace
}  // namespace heap_stress
