// The only kind of lock. It is held for tens of nanoseconds, seldom across a call of the OS (docs/design/scale.md),
// and never across a wait; so waiting for it means spinning with growing patience. It knows its holder: a fork from a
// signal handler may interrupt a thread that holds a lock, and must see that the lock is its own.
//
// A fork is the exception: it holds all locks while other code runs, which may itself wait for a thread that waits for
// one of them. So a fork's hold ends when a thread has waited for long; the child learns of this (heap/fork.h).
#pragma once

#include <atomic>
#include <cstdint>

#include "base/check.h"
#include "base/compiler.h"
#include "base/schedule.h"
#include "platform/hold.h"
#include "platform/lock_order.h"

namespace rh {

// How long a thread waits for a lock that a fork holds, and a fork for a lock. Longer waits are deadlocks, except in
// forks of large processes, which take as long by themselves; their children then lose memory for nothing.
inline constexpr uint64_t kForkPatienceMs = 200;

// True once a lock was taken over from a thread that is gone because the process is ending: what the lock guards may be
// half changed. From then on nothing is freed, and memory comes fresh from the OS.
//
// While the process lives, a lock is taken over from a single terminated thread, and the function below, if there is
// one yet, repairs what it guards.
RH_HIDDEN extern constinit std::atomic<bool> g_inconsistent;
RH_INLINE bool inconsistent() { return RH_UNLIKELY(g_inconsistent.load(std::memory_order_relaxed)); }

// Counts the locks taken from a fork, in memory shared with its child; null until the first fork.
extern constinit std::atomic<std::atomic<uint32_t>*> g_fork_breaks;

class Lock;
extern constinit std::atomic<void (*)(Lock& taken_over)> g_put_in_order;

class Lock {
 public:
#if defined(RH_COHERENCE)
  explicit constexpr Lock(LockRank rank) : holder_(ThreadToken{static_cast<uint8_t>(rank)} << kRankShift) {}
#elif defined(RH_DEBUG_CHECKS)
  explicit constexpr Lock(LockRank rank) : rank_(rank) {}
#else
  explicit constexpr Lock(LockRank) {}
#endif
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  void acquire(ThreadToken token = platform::thread_token()) {
    if constexpr (kDebugChecks) lock_order::check(rank(), token);
    if (RH_UNLIKELY(!try_acquire(token))) acquire_slow(token);
  }

  bool try_acquire(ThreadToken token = platform::thread_token()) {
    schedule_point();
    hold_begins(rank());
    ThreadToken nobody = word_of(0);
    bool acquired =
        holder_.compare_exchange_strong(nobody, word_of(token), std::memory_order_acquire, std::memory_order_relaxed);
    if (kDebugChecks && acquired) lock_order::note_held(rank(), token);
    if (!acquired) hold_refused(rank());
    return acquired;
  }

  // False when it could not be acquired within that time.
  bool acquire_within(uint64_t patience_ms, ThreadToken token);

  void release() {
    if constexpr (kDebugChecks) lock_order::note_let_go(rank(), holder());
    holder_.store(word_of(0), std::memory_order_release);
    hold_ends(rank());
    schedule_point();
  }

  // Releases it, unless it was taken from the fork.
  void release_after_fork();

  bool held_by(ThreadToken token) const { return holder() == token; }

 private:
  RH_COLD void acquire_slow(ThreadToken token);
  bool break_fork(ThreadToken token);
  bool take_from(ThreadToken gone, ThreadToken token);
  void take_over(ThreadToken token);

  ThreadToken holder() const { return holder_.load(std::memory_order_relaxed) & ~word_of(0); }

  std::atomic<ThreadToken> holder_{0};
#if defined(RH_COHERENCE)
  // The rank lies in the byte of the word that no address uses: a member of its own would push what lies behind the
  // lock to other lines than it has in a release. Asking for it is no access of the program's.
  static constexpr unsigned kRankShift = 56;
  [[clang::disable_sanitizer_instrumentation, gnu::noinline]] LockRank rank() const {
    return static_cast<LockRank>(*reinterpret_cast<const volatile ThreadToken*>(&holder_) >> kRankShift);
  }
  ThreadToken word_of(ThreadToken token) const {
    return token | ThreadToken{static_cast<uint8_t>(rank())} << kRankShift;
  }
#else
  static constexpr ThreadToken word_of(ThreadToken token) { return token; }
#if defined(RH_DEBUG_CHECKS)
  LockRank rank() const { return rank_; }
  LockRank rank_;
#else
  LockRank rank() const { return {}; }
#endif
#endif  // RH_COHERENCE
};

class LockGuard {
 public:
  explicit LockGuard(Lock& lock, ThreadToken token = platform::thread_token()) : lock_(lock) { lock_.acquire(token); }
  ~LockGuard() { lock_.release(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  Lock& lock_;
};

}  // namespace rh
