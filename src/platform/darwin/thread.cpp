// Threads: identity, waiting, and the helper thread.
#include <mach/mach_init.h>
#include <mach/semaphore.h>
#include <mach/sync_policy.h>
#include <mach/task.h>
#include <mach/thread_switch.h>
#include <pthread.h>
#include <signal.h>

#include "base/pause.h"
#include "platform/platform.h"
#include "platform/posix/helper.h"

namespace rh::platform {

bool is_single_threaded() { return pthread_is_threaded_np() == 0; }

// Where the C library keeps what is the thread's.
ThreadToken thread_token() { return reinterpret_cast<ThreadToken>(pthread_self()); }

uint64_t thread_id() {
  uint64_t number = 0;
  pthread_threadid_np(nullptr, &number);
  return number;
}

// Not by nanosleep, which is a place where threads are cancelled.
void back_off(unsigned attempt) {
  constexpr unsigned kSpins = 64, kYields = 32;
  constexpr mach_msg_timeout_t kPauseMs = 1;
  if (attempt < kSpins) return pause_briefly();
  const bool yields = attempt < kSpins + kYields;
  thread_switch(MACH_PORT_NULL, yields ? SWITCH_OPTION_NONE : SWITCH_OPTION_WAIT, yields ? 0 : kPauseMs);
}

bool others_are_gone() { return false; }
bool thread_is_gone(ThreadToken) { return false; }
bool has_left_call(const void*) { return false; }
bool helper_is_lost() { return false; }

// ---- waiting ----------------------------------------------------------------------------------
//
// Only the helper waits, so that one semaphore does. What waits on an address here is the system's own, or newer than
// what the library runs on; a semaphore may be signalled in a handler.

namespace {

constinit std::atomic<semaphore_t> g_semaphore{SEMAPHORE_NULL};
constinit std::atomic<bool> g_waits{false};

semaphore_t semaphore() {
  semaphore_t known = g_semaphore.load(std::memory_order_acquire), made = SEMAPHORE_NULL;
  if (known != SEMAPHORE_NULL) return known;
  if (semaphore_create(mach_task_self(), &made, SYNC_POLICY_FIFO, 0) != KERN_SUCCESS) return SEMAPHORE_NULL;
  if (g_semaphore.compare_exchange_strong(known, made, std::memory_order_acq_rel)) return made;
  semaphore_destroy(mach_task_self(), made);
  return known;
}

}  // namespace

void wait(const std::atomic<uint32_t>& word, uint32_t expected, uint64_t timeout_ms) {
  count_os_call(OsCall::wait);
  g_waits.store(true);
  if (word.load() == expected) {
    const mach_timespec_t timeout = {static_cast<unsigned>(timeout_ms / 1000),
                                     static_cast<clock_res_t>(timeout_ms % 1000 * 1000000)};
    if (semaphore_t known = semaphore(); known != SEMAPHORE_NULL)
      semaphore_timedwait(known, timeout);
    else
      thread_switch(MACH_PORT_NULL, SWITCH_OPTION_WAIT, static_cast<mach_msg_timeout_t>(timeout_ms));
  }
  g_waits.store(false);
}

void wake(const std::atomic<uint32_t>&) {
  count_os_call(OsCall::wake);
  if (!g_waits.exchange(false)) return;
  if (semaphore_t known = g_semaphore.load(std::memory_order_acquire); known != SEMAPHORE_NULL) semaphore_signal(known);
}

void prepare() { semaphore(); }

// ---- forks ------------------------------------------------------------------------------------

// The library's topmost layer does this: where it has a malloc zone forks are told to that (entry/darwin/zone.cpp),
// closer to the fork than by pthread_atfork.
void on_fork(void (*)(), void (*)(), void (*)()) {}

void note_streams_allocate() {}

// ---- the helper -------------------------------------------------------------------------------

// The C library takes the stack from the kernel, and asks no malloc.
bool start_helper(void (*main)(), bool (*is_wanted)()) {
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  const bool started = start_helper_unheard(launch_pthread, main, is_wanted);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  return started;
}

// A child has none of its parent's ports.
void forget_helper() {
  g_semaphore.store(SEMAPHORE_NULL, std::memory_order_relaxed);
  g_waits.store(false, std::memory_order_relaxed);
  g_helper_alive.store(0, std::memory_order_relaxed);
}

}  // namespace rh::platform
