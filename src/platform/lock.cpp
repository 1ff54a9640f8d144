#include "platform/lock.h"

#include "platform/report.h"

namespace rh {

alignas(64) constinit std::atomic<bool> g_inconsistent{false};
constinit std::atomic<std::atomic<uint32_t>*> g_fork_breaks{nullptr};
constinit std::atomic<void (*)(Lock& taken_over)> g_put_in_order{nullptr};

// Far longer than any lock is held.
static constexpr unsigned kAskAfter = 128;

// So long a thread may seem to hold the lock that it waits for: what was cloned with all of a thread's memory has its
// token, and may be kept from its processor.
static constexpr uint64_t kOwnPatienceMs = 1000;

// A signal's handler has come between its own thread's steps, and the thread goes on when the handler has ended.
[[noreturn]] static void fail_own() {
  Text message;
  message << "memory asked for, or freed, by a signal handler that interrupted its own thread within malloc or free, ";
  message << "and would wait for it for ever: handlers may not use malloc (signal-safety(7))";
  fatal(message);
}

void Lock::acquire_slow(ThreadToken token) {
  uint64_t fork_since = 0, own_since = 0;
  for (unsigned attempt = 0;; ++attempt) {
    platform::back_off(attempt);
    ThreadToken holder = this->holder();
    if (holder == 0 && try_acquire(token)) return;
    if (platform::others_are_gone()) return take_over(token);
    bool ask = holder != 0 && attempt % kAskAfter == kAskAfter - 1;
    if (ask && platform::thread_is_gone(holder) && take_from(holder, token)) return;
    if (holder != token)
      own_since = 0;
    else if (own_since == 0)
      own_since = platform::now_ms();
    else if (platform::now_ms() - own_since >= kOwnPatienceMs)
      fail_own();
    if (holder != kForkToken)
      fork_since = 0;
    else if (fork_since == 0)
      fork_since = platform::now_ms();
    else if (platform::now_ms() - fork_since >= kForkPatienceMs && break_fork(token))
      return;
  }
}

bool Lock::acquire_within(uint64_t patience_ms, ThreadToken token) {
  uint64_t since = platform::now_ms();
  for (unsigned attempt = 0; !try_acquire(token); ++attempt) {
    if (platform::now_ms() - since > patience_ms) return false;
    platform::back_off(attempt);
  }
  return true;
}

// The count comes first: a child that may see any of what this thread changes under the lock also sees the count.
bool Lock::break_fork(ThreadToken token) {
  std::atomic<uint32_t>* breaks = g_fork_breaks.load(std::memory_order_acquire);
  if (breaks == nullptr) return false;
  breaks->fetch_add(1, std::memory_order_seq_cst);
  ThreadToken fork = word_of(kForkToken);
  bool broken =
      holder_.compare_exchange_strong(fork, word_of(token), std::memory_order_acquire, std::memory_order_relaxed);
  if (kDebugChecks && broken) lock_order::note_held(rank(), token);
  return broken;
}

bool Lock::take_from(ThreadToken gone, ThreadToken token) {
  ThreadToken expected = word_of(gone);
  if (!holder_.compare_exchange_strong(expected, word_of(token), std::memory_order_acquire)) return false;
  if constexpr (kDebugChecks) lock_order::note_passed_on(rank(), gone, token);
  auto put_in_order = g_put_in_order.load(std::memory_order_acquire);
  if (put_in_order != nullptr)
    put_in_order(*this);
  else
    g_inconsistent.store(true, std::memory_order_relaxed);
  return true;
}

void Lock::take_over(ThreadToken token) {
  g_inconsistent.store(true, std::memory_order_relaxed);
  if constexpr (kDebugChecks) lock_order::note_passed_on(rank(), holder(), token);
  holder_.store(word_of(token), std::memory_order_relaxed);
}

void Lock::release_after_fork() {
  ThreadToken fork = word_of(kForkToken);
  holder_.compare_exchange_strong(fork, word_of(0), std::memory_order_release, std::memory_order_relaxed);
}

}  // namespace rh
