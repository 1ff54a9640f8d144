// Threads: identity, waiting, and who forks.
#include <linux/futex.h>
#include <pthread.h>
#include <time.h>

#include <atomic>

#include "base/pause.h"
#include "platform/linux/syscall.h"
#include "platform/linux/thread_pointer.h"
#include "platform/platform.h"

// glibc's, since 2.1 and 2.32; weak, because other C libraries have none.
extern "C" {
[[gnu::weak]] void _IO_list_lock();
[[gnu::weak]] void _IO_list_unlock();
[[gnu::weak]] void _IO_list_resetlock();
[[gnu::weak]] extern char __libc_single_threaded;
}

namespace rh::platform {

// False where the C library does not say.
bool is_single_threaded() { return &__libc_single_threaded != nullptr && __libc_single_threaded != 0; }

ThreadToken thread_token() { return thread_pointer(); }

uint64_t thread_id() { return static_cast<uint64_t>(system_call(SYS_gettid)); }

namespace {

constinit std::atomic<int32_t> g_sleepers{0};

// Beyond some, as many sleep here, as much longer each does: thousands of threads that come back every 50 us leave no
// time to the one that holds what they wait for.
void sleep_briefly() {
  constexpr long kShortest = 50 * 1000;
  constexpr long kSome = 100;
  constexpr long kForEach = 20 * 1000;
  constexpr long kLongest = 20 * 1000 * 1000;
  const long beyond = g_sleepers.fetch_add(1, std::memory_order_relaxed) - kSome;
  const long wanted = beyond > 0 ? kShortest + beyond * kForEach : kShortest;
  timespec pause = {0, wanted > kLongest ? kLongest : wanted};
  system_call(SYS_nanosleep, reinterpret_cast<long>(&pause), 0);
  g_sleepers.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace

void back_off(unsigned attempt) {
  constexpr unsigned kSpins = 64;
  constexpr unsigned kYields = 32;
  if (attempt < kSpins) {
    pause_briefly();
    return;
  }
  if (attempt < kSpins + kYields) {
    system_call(SYS_sched_yield);
    return;
  }
  sleep_briefly();
}

void wait(const std::atomic<uint32_t>& word, uint32_t expected, uint64_t timeout_ms) {
  count_os_call(OsCall::wait);
  timespec timeout = {static_cast<time_t>(timeout_ms / 1000), static_cast<long>(timeout_ms % 1000) * 1000000};
  system_call(SYS_futex, reinterpret_cast<long>(&word), FUTEX_WAIT_PRIVATE, static_cast<long>(expected),
              reinterpret_cast<long>(&timeout));
}

void wake(const std::atomic<uint32_t>& word) {
  count_os_call(OsCall::wake);
  system_call(SYS_futex, reinterpret_cast<long>(&word), FUTEX_WAKE_PRIVATE, 1);
}

// exit stops no thread before it has run its handlers.
bool others_are_gone() { return false; }

bool thread_is_gone(ThreadToken) { return false; }
bool has_left_call(const void*) { return false; }
bool helper_is_lost() { return false; }

namespace {

using Handler = void (*)();
constinit Handler g_before_fork = nullptr;
constinit Handler g_after_fork_in_parent = nullptr;
constinit Handler g_after_fork_in_child = nullptr;
constinit bool g_holds_streams = false;  // the forking thread's

constinit std::atomic<bool> g_streams_allocate{false};

// glibc takes its list of streams after these handlers and before its own malloc's locks, because a thread that walks
// the list waits for streams whose users allocate. So it is taken before our locks as well, but not where glibc would
// not take it, for only then does glibc reset the list in the child.
bool take_streams() {
  if (_IO_list_lock == nullptr || is_single_threaded()) return false;
  if (!g_streams_allocate.load(std::memory_order_relaxed)) return false;
  _IO_list_lock();
  if (g_streams_allocate.load(std::memory_order_relaxed)) return true;
  _IO_list_unlock();
  return false;
}

void before_fork() {
  g_holds_streams = take_streams();
  g_before_fork();
}

void after_fork_in_parent() {
  bool holds_streams = g_holds_streams;
  g_after_fork_in_parent();
  if (holds_streams) _IO_list_unlock();
}

void after_fork_in_child() {
  g_sleepers.store(0, std::memory_order_relaxed);
  if (g_holds_streams) _IO_list_resetlock();
  g_after_fork_in_child();
}

// When this library's destructors run the C library forgets these handlers, even in the middle of another thread's
// fork: the others would then never release what the first of them took, and the program's exit would wait for it. So
// before that, once no fork holds the list, no handler takes it any more.
[[gnu::destructor]] void leave_streams() {
  if (!take_streams()) return;
  g_streams_allocate.store(false, std::memory_order_relaxed);
  _IO_list_unlock();
}

}  // namespace

void note_streams_allocate() { g_streams_allocate.store(true, std::memory_order_relaxed); }

// Registered first, so called last before a fork and first after it.
void on_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) {
  g_before_fork = before;
  g_after_fork_in_parent = in_parent;
  g_after_fork_in_child = in_child;
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

}  // namespace rh::platform
