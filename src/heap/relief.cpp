#include "heap/relief.h"

#include "heap/idle.h"
#include "heap/limit.h"

namespace rh::relief {

namespace {

// More than this is to be held before anything is done again; it is so much more than that limit.
constinit std::atomic<size_t> g_next{0}, g_next_of{0};
constinit std::atomic<uint64_t> g_relief_at{0};
constinit std::atomic<Listener> g_listener{nullptr};
constinit std::atomic<platform::ThreadToken> g_teller{0};

// Giving back all that is free costs faults when it is used again, and in a large heap takes its time: no more often
// than this, and no more than a ninth of the time.
constexpr uint64_t kBetweenMs = 20, kRest = 8;

// By so much more, or less, than at the last time is worth looking again.
size_t step_of(size_t limit) {
  constexpr size_t kShare = 32, kLeast = size_t{1} << 20, kMost = size_t{64} << 20;
  size_t step = limit / kShare;
  if (step < kLeast) step = kLeast;
  if (step > kMost) step = kMost;
  return step < limit / 2 ? step : limit / 2;
}

bool is_crossed(const Arena::Standing& now) {
  bool known = g_next_of.load(std::memory_order_relaxed) == limit::lower_of(now.limit);
  return limit::is_beyond(now) && (!known || now.held > g_next.load(std::memory_order_relaxed));
}

// Sets when answer() is wanted next.
void arm(const Arena::Standing& now, platform::ThreadToken token) {
  size_t limit = limit::lower_of(now.limit), above = limit, below = 0;
  if (limit::is_beyond(now)) {
    above = g_next.load(std::memory_order_relaxed);
    below = limit - step_of(limit);
  } else {
    g_next.store(limit, std::memory_order_relaxed);
    g_next_of.store(limit, std::memory_order_relaxed);
  }
  if (size_t soon = now.held + step_of(limit); limit::follows() && soon < above) above = soon;
  LockGuard guard(g_arena.lock(), token);
  bool stands = g_arena.limit() == now.limit;
  g_arena.watch(stands ? above : 0, stands ? below : 0);
}

// What is free goes back.
Arena::Standing relieve(Arena::Standing now, platform::ThreadToken token) {
  limit::note_crossed();
  if (uint64_t begin = platform::now_ms(); begin >= g_relief_at.load(std::memory_order_relaxed)) {
    g_relief_at.store(begin + kBetweenMs, std::memory_order_relaxed);
    idle::trim();
    now = g_arena.standing(token);
    uint64_t end = platform::now_ms(), rest = kRest * (end - begin);
    g_relief_at.store(end + (rest > kBetweenMs ? rest : kBetweenMs), std::memory_order_relaxed);
  }
  size_t limit = limit::lower_of(now.limit);
  g_next.store(now.held + step_of(limit), std::memory_order_relaxed);
  g_next_of.store(limit, std::memory_order_relaxed);
  return now;
}

// One at a time: a listener that allocates is not told of that.
void tell(const Arena::Standing& now, platform::ThreadToken token) {
  Listener listener = g_listener.load(std::memory_order_acquire);
  platform::ThreadToken nobody = 0;
  if (listener == nullptr || !g_teller.compare_exchange_strong(nobody, token)) return;
  listener(now.held, limit::lower_of(now.limit));
  g_teller.store(0);
}

}  // namespace

Listener listen(Listener listener) { return g_listener.exchange(listener, std::memory_order_acq_rel); }

RH_COLD void answer() {
  if (!g_limit_calls.exchange(false, std::memory_order_relaxed) || inconsistent()) return;
  platform::ThreadToken token = platform::thread_token();
  if (limit::follows() && limit::renew(token)) g_limit_calls.store(false, std::memory_order_relaxed);
  Arena::Standing now = g_arena.standing(token);
  bool crossed = is_crossed(now);
  if (crossed) now = relieve(now, token);
  arm(now, token);
  if (crossed && limit::is_beyond(now)) tell(now, token);
}

void after_fork_in_child() {
  if (g_teller.load() != platform::thread_token()) g_teller.store(0);
}

}  // namespace rh::relief
