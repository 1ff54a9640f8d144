// The only kind of lock. It is held for tens of nanoseconds, at most across a call that commits memory or returns it,
// and never across a wait; so waiting for it means spinning with growing patience. It knows its holder: a fork from a
// signal handler may interrupt a thread that holds a lock, and must see that the lock is its own.
//
// A fork is the exception: it holds all locks while other code runs, which may itself wait for a thread that waits for
// one of them. So a fork's hold ends when a thread has waited for long; the child learns of this (heap/fork.h).
#pragma once

#include <atomic>
#include <cstdint>

#include "base/compiler.h"
#include "base/schedule.h"
#include "platform/platform.h"

namespace rh {

using platform::ThreadToken;

// Tokens that belong to no thread: the helper's, which thread_token() does not know, and a fork's.
inline constexpr ThreadToken kHelperToken = 1;
inline constexpr ThreadToken kForkToken = 3;

// How long a thread waits for a lock that a fork holds, and a fork for a lock. Longer waits are deadlocks, except in
// forks of large processes, which take as long by themselves; their children then lose memory for nothing.
inline constexpr uint64_t kForkPatienceMs = 200;

// True once a lock was taken over from a thread that is gone because the process is ending: what the lock guards may be
// half changed. From then on nothing is freed, and memory comes fresh from the OS.
//
// While the process lives, a lock is taken over from a single terminated thread, and the function below, if there is
// one yet, repairs what it guards.
extern constinit std::atomic<bool> g_torn;
RH_INLINE bool torn() { return RH_UNLIKELY(g_torn.load(std::memory_order_relaxed)); }

// Counts the locks taken from a fork, in memory shared with its child; null until the first fork.
extern constinit std::atomic<std::atomic<uint32_t>*> g_fork_breaks;

class Lock;
extern constinit std::atomic<void (*)(Lock& taken_over)> g_put_in_order;

// Order in which one thread may take several: docs/ARCHITECTURE.md.
class Lock {
 public:
  constexpr Lock() = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  void acquire(ThreadToken token = platform::thread_token()) {
    if (RH_UNLIKELY(!try_acquire(token))) acquire_slow(token);
  }

  bool try_acquire(ThreadToken token = platform::thread_token()) {
    schedule_point();
    ThreadToken nobody = 0;
    return holder_.compare_exchange_strong(nobody, token, std::memory_order_acquire,
                                           std::memory_order_relaxed);
  }

  // False when it could not be acquired within that time.
  bool acquire_within(uint64_t patience_ms, ThreadToken token);

  void release() {
    holder_.store(0, std::memory_order_release);
    schedule_point();
  }

  // Releases it, unless it was taken from the fork.
  void release_after_fork();

  bool held_by(ThreadToken token) const { return holder_.load(std::memory_order_relaxed) == token; }

 private:
  RH_COLD void acquire_slow(ThreadToken token);
  bool break_fork(ThreadToken token);
  bool take_from(ThreadToken gone, ThreadToken token);
  void take_over(ThreadToken token);

  std::atomic<ThreadToken> holder_{0};
};

class LockGuard {
 public:
  explicit LockGuard(Lock& lock, ThreadToken token = platform::thread_token()) : lock_(lock) {
    lock_.acquire(token);
  }
  ~LockGuard() { lock_.release(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  Lock& lock_;
};

}  // namespace rh
