// Threads: identity, waiting, and the helper thread.
#include "base/pause.h"
#include "platform/lock.h"
#include "platform/platform.h"
#include "platform/windows/system.h"

#include <winternl.h>

namespace rh::platform {

// Thread ids are multiples of 4: never 0, kHelperToken or kForkToken.
ThreadToken thread_token() { return GetCurrentThreadId(); }

uint64_t thread_id() { return GetCurrentThreadId(); }

// Nothing on Windows depends on it.
bool is_single_threaded() { return false; }

void back_off(unsigned attempt) {
  constexpr unsigned kSpins = 64;
  constexpr unsigned kYields = 32;
  if (attempt < kSpins)
    pause_briefly();
  else if (attempt < kSpins + kYields)
    SwitchToThread();
  else
    Sleep(1);
}

bool others_are_gone() { return RtlDllShutdownInProgress() != FALSE; }

namespace {
constinit std::atomic<DWORD> g_helper_id{0};
}

// Ids are reused, by other processes too. The waiting thread holds nothing, so if the id is now its own, it was
// another's before.
bool thread_is_gone(ThreadToken token) {
  KeepLastError keep;
  DWORD id = token == kHelperToken ? g_helper_id.load(std::memory_order_relaxed) : static_cast<DWORD>(token);
  if (id == GetCurrentThreadId()) return true;
  HANDLE thread = OpenThread(SYNCHRONIZE | THREAD_QUERY_LIMITED_INFORMATION, FALSE, id);
  if (thread == nullptr) return GetLastError() == ERROR_INVALID_PARAMETER;
  bool gone = GetProcessIdOfThread(thread) != GetCurrentProcessId() || WaitForSingleObject(thread, 0) == WAIT_OBJECT_0;
  CloseHandle(thread);
  return gone;
}

static void* allocation_of(const void* address) {
  MEMORY_BASIC_INFORMATION memory = {};
  VirtualQuery(address, &memory, sizeof(memory));
  return memory.AllocationBase;
}

// Handlers of exceptions run on the stack of what they interrupt, below it. What is below this call has been left, as
// has what lies on another fiber's stack.
bool has_left_call(const void* frame) {
  KeepLastError keep;
  const void* here = __builtin_frame_address(0);
  return frame < here || allocation_of(frame) != allocation_of(here);
}

// ---- the helper thread ------------------------------------------------------------------------

namespace {

enum HelperState : uint32_t { kNone, kRuns, kStopping, kParked };

constinit std::atomic<uint32_t> g_helper{kNone};
constinit HANDLE g_helper_thread = nullptr;
constinit std::atomic<HANDLE> g_wake{nullptr};  // the event that the helper waits on

// A process whose last thread ends by itself exits with that thread's exit code. So that this is never the helper's
// own, the helper exits with the code of the thread that ended last before it.
constinit std::atomic<HANDLE> g_latest_end{nullptr};

DWORD take_latest_exit_code() {
  HANDLE thread = g_latest_end.exchange(nullptr, std::memory_order_acq_rel);
  DWORD code = 0;
  if (thread == nullptr) return code;
  GetExitCodeThread(thread, &code);
  close_protected(thread);
  return code;
}

bool is_last_thread() {
  constexpr auto kThreadAmILastThread = static_cast<THREADINFOCLASS>(12);
  ULONG last = 0;
  NtQueryInformationThread(GetCurrentThread(), kThreadAmILastThread, &last, sizeof(last), nullptr);
  return last != 0;
}

// Stops the helper for good: here it holds nothing and may be terminated.
[[noreturn]] void park() {
  g_helper.store(kParked, std::memory_order_release);
  for (;;) Sleep(INFINITE);
}

// Its id is known to the thread that created it, and to all threads before it does anything.
DWORD WINAPI run_helper(void* main) {
  g_helper_id.store(GetCurrentThreadId(), std::memory_order_relaxed);
  reinterpret_cast<void (*)()>(main)();
  uint32_t runs = kRuns;
  if (!g_helper.compare_exchange_strong(runs, kNone, std::memory_order_release)) park();
  return take_latest_exit_code();
}

HANDLE wake_event() {
  HANDLE event = g_wake.load(std::memory_order_acquire);
  if (event != nullptr) return event;
  HANDLE made = protect_from_close(CreateEventW(nullptr, FALSE, FALSE, nullptr));
  if (g_wake.compare_exchange_strong(event, made, std::memory_order_acq_rel)) return made;
  close_protected(made);
  return event;
}

}  // namespace

void keep_exit_code() {
  if (g_helper.load(std::memory_order_acquire) != kRuns) return;
  HANDLE process = GetCurrentProcess();
  HANDLE self = nullptr;
  DuplicateHandle(process, GetCurrentThread(), process, &self, THREAD_QUERY_LIMITED_INFORMATION, FALSE, 0);
  close_protected(g_latest_end.exchange(protect_from_close(self), std::memory_order_acq_rel));
}

// Only the helper calls this.
void wait(const std::atomic<uint32_t>& word, uint32_t expected, uint64_t timeout_ms) {
  count_os_call(OsCall::wait);
  if (word.load(std::memory_order_acquire) != expected) return;
  HANDLE event = wake_event();
  if (event != nullptr)
    WaitForSingleObject(event, static_cast<DWORD>(timeout_ms));
  else
    Sleep(static_cast<DWORD>(timeout_ms));
  if (g_helper.load(std::memory_order_acquire) == kStopping) park();
  if (is_last_thread()) ExitThread(take_latest_exit_code());
}

void wake(const std::atomic<uint32_t>&) {
  count_os_call(OsCall::wake);
  if (HANDLE event = g_wake.load(std::memory_order_acquire); event != nullptr) SetEvent(event);
}

// If created under the loader lock it starts when that is free; nobody waits for it.
bool start_helper(void (*main)(), bool (*is_wanted)()) {
  KeepLastError keep;
  if (others_are_gone() || !is_wanted()) return false;
  uint32_t none = kNone;
  if (!g_helper.compare_exchange_strong(none, kRuns, std::memory_order_acquire)) return false;
  count_os_call(OsCall::thread);
  close_protected(g_helper_thread);
  // With the stack size of the program's own threads: every DLL's thread attach code runs on it.
  DWORD id = 0;
  g_helper_thread = protect_from_close(CreateThread(nullptr, 0, run_helper, reinterpret_cast<void*>(main), 0, &id));
  if (g_helper_thread != nullptr) {
    g_helper_id.store(id, std::memory_order_relaxed);
    keep_exit_code();  // this thread may be ending already
    return true;
  }
  g_helper.store(kNone, std::memory_order_release);
  return false;
}

// By what it runs: its id is known to others only when it has begun, after all that a thread's start does.
bool is_helper() {
  constexpr auto kThreadQuerySetWin32StartAddress = static_cast<THREADINFOCLASS>(9);
  void* start = nullptr;
  NtQueryInformationThread(GetCurrentThread(), kThreadQuerySetWin32StartAddress, &start, sizeof(start), nullptr);
  return start == reinterpret_cast<void*>(run_helper);
}

bool helper_is_lost() { return g_helper.load(std::memory_order_acquire) == kRuns && thread_is_gone(kHelperToken); }

void forget_helper() { g_helper.store(kNone, std::memory_order_relaxed); }

// The loader lock is held, so the helper cannot end by itself, which takes that lock too. It is brought to a place
// where it holds nothing, and terminated there. Wine keeps the stack of a terminated thread, but one that terminates
// itself ends programs there: its thread environment block is freed, and stays in the loader's list.
void stop_helper() {
  KeepLastError keep;
  if (g_helper_thread == nullptr) return;
  uint32_t runs = kRuns;
  if (g_helper.compare_exchange_strong(runs, kStopping, std::memory_order_acq_rel)) {
    if (HANDLE event = wake_event(); event != nullptr) SetEvent(event);
    // One started a moment ago may itself wait for the loader lock, before its first instruction.
    constexpr unsigned kAttempts = 300;
    for (unsigned attempt = 0; attempt < kAttempts && g_helper.load(std::memory_order_acquire) != kParked; ++attempt)
      back_off(attempt);
    TerminateThread(g_helper_thread, 0);
  }
  WaitForSingleObject(g_helper_thread, 100);
  close_protected(g_helper_thread);
  g_helper_thread = nullptr;
  take_latest_exit_code();  // nobody exits with it now
  close_protected(g_wake.exchange(nullptr, std::memory_order_acq_rel));
  g_helper.store(kNone, std::memory_order_relaxed);
}

void stop_helper(const std::atomic<uint32_t>&) { stop_helper(); }

// Windows has no fork.
void on_fork(void (*)(), void (*)(), void (*)()) {}

void note_streams_allocate() {}
std::atomic<uint32_t>* make_shared_counter() { return nullptr; }
bool renew(uintptr_t, size_t) { return false; }

}  // namespace rh::platform
