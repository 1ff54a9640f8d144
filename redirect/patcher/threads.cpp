#include "threads.h"

#include <windows.h>
#include <winternl.h>

namespace rh::redirect {

namespace {

constexpr size_t kMostThreads = 32768;

// How long new threads are run after. Some may come for as long as any run: of those made by other processes, and where
// each makes the next and ends before it is stopped.
constexpr ULONGLONG kPatienceMs = 2000;

// Gives the threads of a process one after the other, new ones last, without allocating. In ntdll since Windows Vista.
using GetNextThread = LONG(NTAPI*)(HANDLE process, HANDLE after, ACCESS_MASK access, ULONG attributes, ULONG flags,
                                   HANDLE* next);

GetNextThread get_next_thread() {
  static GetNextThread function = nullptr;
  if (function == nullptr) {
    HMODULE ntdll = GetModuleHandleW(L"ntdll.dll");
    function = reinterpret_cast<GetNextThread>(reinterpret_cast<void*>(GetProcAddress(ntdll, "NtGetNextThread")));
  }
  return function;
}

#if defined(__x86_64__)
DWORD64& position_in(CONTEXT& context) { return context.Rip; }
#elif defined(__i386__)
DWORD& position_in(CONTEXT& context) { return context.Eip; }
#else
DWORD64& position_in(CONTEXT& context) { return context.Pc; }
#endif

// What NtQueryInformationThread gives first; winternl.h lacks it.
struct BasicInformation {
  LONG exit_status;
  void* environment;
  struct {
    HANDLE process;
    HANDLE thread;
  } id;
  ULONG_PTR affinity;
  LONG priority;
  LONG base_priority;
};

BasicInformation information_on(HANDLE thread) {
  BasicInformation information = {};
  NtQueryInformationThread(thread, static_cast<THREADINFOCLASS>(0), &information, sizeof(information), nullptr);
  return information;
}

// Under Wine a thread has no environment block until it runs for the first time (in a 32-bit process the block's
// address is then an offset from nothing). If the thread that makes it is stopped before that, it never comes to where
// its context could be read, and reading would wait for ever.
bool has_begun(HANDLE thread) {
  constexpr uintptr_t kLowestAddress = 65536;
  return reinterpret_cast<uintptr_t>(information_on(thread).environment) >= kLowestAddress;
}

// Also waits until the thread has really stopped, which SuspendThread alone does not.
bool read_context(HANDLE thread, CONTEXT* context) {
  context->ContextFlags = CONTEXT_CONTROL;
  return has_begun(thread) && GetThreadContext(thread, context) != 0;
}

}  // namespace

StoppedThreads::StoppedThreads() {
  threads_ = static_cast<Thread*>(
      VirtualAlloc(nullptr, kMostThreads * sizeof(Thread), MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
  if (threads_ == nullptr || get_next_thread() == nullptr) return;
  // Threads still running may make threads, until a round finds none.
  late_at_ = GetTickCount64() + kPatienceMs;
  for (size_t before = 0; !all_ && has_patience(); before = count_) {
    stop_new_ones();
    all_ = count_ == before && has_patience();
  }
}

bool StoppedThreads::has_patience() const { return count_ < kMostThreads && GetTickCount64() < late_at_; }

StoppedThreads::~StoppedThreads() {
  resume();
  if (threads_ != nullptr) VirtualFree(threads_, 0, MEM_RELEASE);
}

void StoppedThreads::resume() {
  while (count_ != 0) {
    HANDLE thread = threads_[--count_].handle;
    ResumeThread(thread);
    CloseHandle(thread);
  }
}

// One round over all threads. The handle that a round goes on from must stay open for one step longer.
void StoppedThreads::stop_new_ones() {
  constexpr ACCESS_MASK kAccess =
      THREAD_SUSPEND_RESUME | THREAD_GET_CONTEXT | THREAD_SET_CONTEXT | THREAD_QUERY_INFORMATION;
  HANDLE next = nullptr;
  HANDLE to_close = nullptr;
  for (HANDLE last = nullptr; has_patience(); last = next) {
    LONG status = get_next_thread()(GetCurrentProcess(), last, kAccess, 0, 0, &next);
    if (to_close != nullptr) CloseHandle(to_close);
    to_close = nullptr;
    if (status != 0) return;
    if (!stop(next)) to_close = next;
  }
  if (to_close != nullptr) CloseHandle(to_close);
}

// True when it is stopped and in the list, which owns the handle then. A thread that cannot be stopped is at its end.
bool StoppedThreads::stop(void* handle) {
  auto id = static_cast<DWORD>(reinterpret_cast<uintptr_t>(information_on(handle).id.thread));
  if (id == GetCurrentThreadId() || is_known(id)) return false;
  if (SuspendThread(handle) == static_cast<DWORD>(-1)) return false;
  CONTEXT context;
  read_context(handle, &context);
  threads_[count_++] = {handle, id};
  return true;
}

bool StoppedThreads::is_known(unsigned long id) const {
  for (size_t i = 0; i < count_; ++i)
    if (threads_[i].id == id) return true;
  return false;
}

uintptr_t StoppedThreads::position(size_t index) const {
  CONTEXT context;
  return read_context(threads_[index].handle, &context) ? position_in(context) : 0;
}

bool StoppedThreads::set_position(size_t index, uintptr_t address) {
  CONTEXT context;
  if (!read_context(threads_[index].handle, &context)) return false;
  position_in(context) = static_cast<decltype(+position_in(context))>(address);
  return SetThreadContext(threads_[index].handle, &context) != 0;
}

}  // namespace rh::redirect
