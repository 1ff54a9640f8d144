#include "heap/idle.h"

#include "heap/heap.h"
#include "heap/registry.h"

namespace rh::idle {

namespace {

constexpr uint64_t kDefaultDecayMs = 500;

// Less than this is not worth a thread.
constexpr size_t kWorthReturning = 512 * 1024;

constinit std::atomic<uint64_t> g_decay_ms{kDefaultDecayMs};
constinit std::atomic<uint32_t> g_helper_runs{0};
constinit std::atomic<uint64_t> g_retry_at{0};

enum class Rest : uint8_t { required, not_required };

size_t activity(const Heap* heap) { return heap->refills.value() + heap->marks.value(); }

// Whether the heap's thread has done nothing here since the helper last asked.
bool at_rest(Heap* heap) {
  size_t now = activity(heap);
  bool rests = heap->seen_activity.value() == now;
  heap->seen_activity.set(now);
  return rests;
}

void collect(Heap* heap, ThreadToken token) {
  if (!heap->lock.try_acquire(token)) return;
  drain(heap, {token, false});
  release_empty(heap, token);
  heap->lock.release();
}

void collect_all(ThreadToken token, Rest rest) {
  for (Heap* heap = registry::threads(); heap != nullptr; heap = heap->next) {
    if (rest == Rest::not_required || at_rest(heap)) collect(heap, token);
  }
}

// Four looks in the time that memory may stay, so that it goes at most a quarter late.
uint64_t interval_ms() {
  uint64_t interval = decay_ms() / 4;
  return interval < 10 ? 10 : interval;
}

bool much_is_free() { return g_arena.dirty_bytes() >= kWorthReturning; }

// The helper thread. It ends when little is left to return; whoever frees next starts another.
void help_until_idle() {
  static constinit std::atomic<uint32_t> never{0};
  uint32_t no = 0;
  do {
    do {
      platform::wait(never, 0, interval_ms());
      collect_all(kHelperToken, Rest::required);
      g_arena.purge(decay_ms(), Arena::kAll, kHelperToken);
    } while (much_is_free());
    g_helper_runs.store(0, std::memory_order_seq_cst);
    // What was freed just now may have counted on this thread: stay, unless another is about to start.
    no = 0;
  } while (much_is_free() && g_helper_runs.compare_exchange_strong(no, 1));
}

// Without a helper (the system would not give a thread), those who free do its work now and then. What is young when they
// stop would stay for ever: little of it may.
void decay_here() {
  constexpr size_t kMostYoung = size_t{16} << 20;
  if (size_t dirty = g_arena.dirty_bytes(); dirty > kMostYoung) {
    g_arena.purge(0, Units::holding(dirty - kMostYoung));
  }
  uint64_t now = platform::now_ms();
  if (now < g_retry_at.load(std::memory_order_relaxed)) return;
  g_retry_at.store(now + interval_ms(), std::memory_order_relaxed);
  g_arena.purge(decay_ms());
}

void start_helper() {
  uint32_t no = 0;
  if (!g_helper_runs.compare_exchange_strong(no, 1, std::memory_order_relaxed)) return;
  // The one before may be on its last instructions.
  for (unsigned attempt = 0; attempt < 110; ++attempt) {
    if (platform::start_helper(help_until_idle)) return;
    platform::back_off(attempt);
  }
  g_helper_runs.store(0, std::memory_order_relaxed);
  decay_here();
}

}  // namespace

void set_decay_ms(uint64_t decay_ms) { g_decay_ms.store(decay_ms, std::memory_order_relaxed); }
uint64_t decay_ms() { return g_decay_ms.load(std::memory_order_relaxed); }

void note_free() {
  if (decay_ms() == 0) g_arena.purge(0);
  if (torn() || !much_is_free() || g_helper_runs.load(std::memory_order_relaxed) != 0) return;
  if (platform::now_ms() >= g_retry_at.load(std::memory_order_relaxed)) {
    start_helper();
  } else {
    decay_here();
  }
}

// Also what the calling thread holds back itself.
static void collect_everything() {
  ThreadToken token = platform::thread_token();
  if (Heap* heap = own_heap_if_any(); heap != nullptr) {
    post_all(heap);
    LockGuard guard(heap->lock, token);
    empty_bins(heap);
  }
  collect_all(token, Rest::not_required);
}

bool reclaim() {
  if (torn()) return false;
  size_t before = g_arena.figures().in_use;
  collect_everything();
  // What is purged becomes one with the purged memory beside it, which may be as long as is wanted.
  bool merged = g_arena.purge(0) != 0;
  return merged || g_arena.figures().in_use < before;
}

size_t trim() {
  collect_everything();
  return g_arena.purge(0);
}

void after_fork_in_child() {
  platform::forget_helper();
  g_helper_runs.store(0, std::memory_order_relaxed);
}

}  // namespace rh::idle
