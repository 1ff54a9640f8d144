// The one lock. Held for tens of nanoseconds, at most across a call that commits memory or gives it back, and never across
// a wait; so waiting for it is spinning that grows patient. It knows its holder: a fork from a signal handler may interrupt a thread
// that holds a lock, and must see that it is its own.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/compiler.h"
#include "platform/platform.h"

namespace rh {

using platform::ThreadToken;

// True once a lock was taken over from a thread that is no more, because the process is ending: what a lock guards may
// be half-changed. From then on nothing is freed, and memory comes fresh from the OS.
extern constinit std::atomic<bool> g_torn;
inline bool torn() { return RH_UNLIKELY(g_torn.load(std::memory_order_relaxed)); }

// Order in which one thread may take several (docs/ARCHITECTURE.md): a heap, the registry, the arena.
class Lock {
 public:
  constexpr Lock() = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  void acquire(ThreadToken token = platform::thread_token()) {
    if (RH_UNLIKELY(!try_acquire(token))) acquire_slow(token);
  }

  bool try_acquire(ThreadToken token = platform::thread_token()) {
    ThreadToken nobody = 0;
    return holder_.compare_exchange_strong(nobody, token, std::memory_order_acquire,
                                           std::memory_order_relaxed);
  }

  void release() { holder_.store(0, std::memory_order_release); }

  bool held_by(ThreadToken token) const { return holder_.load(std::memory_order_relaxed) == token; }

 private:
  RH_COLD void acquire_slow(ThreadToken token) {
    for (unsigned attempt = 0;; ++attempt) {
      platform::back_off(attempt);
      if (holder_.load(std::memory_order_relaxed) == 0 && try_acquire(token)) return;
      if (platform::others_are_gone()) return take_over(token);
    }
  }

  void take_over(ThreadToken token) {
    g_torn.store(true, std::memory_order_relaxed);
    holder_.store(token, std::memory_order_relaxed);
  }

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

// The helper thread's, which thread_token() knows nothing of; no thread's token is 1.
inline constexpr ThreadToken kHelperToken = 1;

}  // namespace rh
