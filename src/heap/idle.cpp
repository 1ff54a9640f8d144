#include "heap/idle.h"

#include "heap/limit.h"
#include "heap/registry.h"
#include "heap/remote.h"
#include "heap/shared.h"
#include "heap/slab_lists.h"
#include "heap/spans.h"
#include "heap/sparse.h"
#include "heap/tags.h"

namespace rh::idle {

// Read by those who allocate while much is held back.
constinit std::atomic<uint32_t> g_helper_runs{0};

namespace {

constexpr uint64_t kDefaultDecayMs = 500;

// Less than this is not worth a thread.
constexpr size_t kWorthReturning = 512 * 1024;

constinit std::atomic<uint64_t> g_decay_ms{kDefaultDecayMs};
constinit std::atomic<uint64_t> g_retry_at{0};
constinit std::atomic<uint64_t> g_look_at{0};

// The helper is asked to end while somebody wants none; none is made meanwhile. The next takes back what asked the
// last.
constinit std::atomic<uint32_t> g_stop{0};
constinit std::atomic<uint32_t> g_unwanted{0};
constinit Lock g_starting{LockRank::helper_start};

constinit std::atomic<bool> g_waits_return{false};

// Where address space is short so much is not kept warm; and after so much was purged at once it is worth a look which
// pieces are free from end to end.
constexpr size_t kMostWarm = k64Bit ? SIZE_MAX : size_t{256} << 20;
constexpr size_t kWorthReleasing = size_t{64} << 20;

constinit std::atomic<size_t> g_purged_here{0};

// What those who allocate leave to the helper, in bytes.
constinit std::atomic<size_t> g_surplus{0};

// What is taken from which heaps: of those at rest what is due, of so many sparse slabs each, or of all of them all.
struct Due {
  bool now;
  unsigned most_slabs;
  bool left_at_hand = false;  // also what threads that have ended left in bins: not in signal handlers
};
constexpr Due kEverything{true, ~0u, true};
constexpr Due kOfHelper{false, ~0u, true};
constexpr Due kOfPassers{false, 16};
constexpr Due kWhileWaiting{true, 256};  // some two milliseconds' work

// What was not done.
struct Left {
  bool heaps = false;  // some were passed over
  bool slabs = false;  // more may have pages to give
};

size_t activity(const Heap* heap) { return heap->refills.value() + heap->marks.value() + heap->store.uses(); }

// Whether a count is as it was when the helper last asked.
bool stands(Counter& seen, size_t now) {
  bool same = seen.value() == now;
  seen.set(now);
  return same;
}

constinit std::atomic<void (*)(Heap*)> g_let_go{nullptr};

void let_go(Heap* heap) {
  if (auto by = g_let_go.load(std::memory_order_relaxed)) by(heap);
}

// Whether the heap's thread has done nothing here since.
bool at_rest(Heap* heap) {
  const bool rests = stands(heap->seen_activity, activity(heap));
  heap->looks_at_rest.set(rests ? heap->looks_at_rest.value() + 1 : 0);
  return rests;
}

// Where threads come and go the next takes what the last has left; and to ask whose a heap is may cost a call of the
// system.
constexpr size_t kLooksTillLeft = 4;

// So that the helper sees to what was left behind just before, and to what that sent to others; and, counted anew then,
// to what was freed into heaps that nobody works with.
constexpr size_t kLooksAtLeast = 2 * kLooksTillLeft;

bool may_be_left(const Heap* heap, Due due) {
  return due.left_at_hand && (due.now || heap->looks_at_rest.value() >= kLooksTillLeft);
}

// A thread that works with what it has may have a store that it does not need.
void collect_store(Heap* heap, ThreadToken token) {
  bool unused = stands(heap->seen_store_uses, heap->store.uses());
  if (!unused || !heap->lock.try_acquire(token)) return;
  spans::give_back_all(heap, token);
  heap->lock.release();
}

// Whether what only its owner touches may be touched here, under the lock: of a heap bound to another thread not.
bool is_open(const Heap* heap) { return heap->shared && (!is_bound(heap) || is_mine(heap)); }

// The caller holds heap.lock, by `token`.
void collect_locked(Heap* heap, ThreadToken token, Due due) {
  bool open = is_open(heap) || (may_be_left(heap, due) && shared::disown_if_left(heap, token));
  drain(heap, {token, open});
  if (open) {
    shared::give_back_empty(heap, token);
  } else {
    release_empty(heap, token);
    for (Span* slab : heap->current)
      if (slab != nullptr) slab::clear_uncarved(slab);
  }
}

bool collect(Heap* heap, ThreadToken token, Due due) {
  if (!heap->shared && may_be_left(heap, due)) registry::collect_if_left(heap, token, let_go);
  if (!heap->lock.try_acquire(token)) return false;
  collect_locked(heap, token, due);
  heap->lock.release();
  return true;
}

// False when it was passed over.
bool collect_if_due(Heap* heap, ThreadToken token, Due due) {
  const bool wanted = due.now || at_rest(heap);
  if (wanted && collect(heap, token, due)) return true;
  collect_store(heap, token);
  return false;
}

Left collect_threads(ThreadToken token, Due due) {
  Left left;
  for (Heap* heap = registry::threads(); heap != nullptr; heap = heap->next) {
    left.heaps |= !collect_if_due(heap, token, due);
    left.slabs |= sparse::look(heap, due.now, due.most_slabs, token);
  }
  return left;
}

// Those who fork wait for the lock of their list: it is held for so many slabs of one that give pages.
Left collect_shared(ThreadToken token, Due due) {
  constexpr unsigned kMostSlabs = 256;
  const unsigned most = due.most_slabs < kMostSlabs ? due.most_slabs : kMostSlabs;
  const bool all_slabs = due.now && most < due.most_slabs;
  Left left;
  if (registry::shared_heaps() != nullptr) {
    registry::Walk walk(token);
    while (Heap* heap = walk.next()) {
      left.heaps |= !collect_if_due(heap, token, due);
      bool more = sparse::look(heap, due.now, most, token);
      while (more && all_slabs && walk.stay()) more = sparse::look(heap, due.now, most, token);
      left.slabs |= more;
    }
    left.heaps |= !walk.is_whole();
  }
  if (!left.heaps) retained::forget_freed();
  return left;
}

Left collect_all(ThreadToken token, Due due) {
  const Left shared = collect_shared(token, due), threads = collect_threads(token, due);
  const Left left{shared.heaps || threads.heaps, shared.slabs || threads.slabs};
  if (!left.heaps) retained::begin_count();
  return left;
}

// So that memory goes at most a quarter late.
uint64_t interval_ms() {
  uint64_t interval = decay_ms() / sparse::kLooks;
  return interval < 10 ? 10 : interval;
}

// At most once an interval.
bool is_due(std::atomic<uint64_t>& at) {
  uint64_t now = platform::now_ms();
  if (now < at.load(std::memory_order_relaxed)) return false;
  at.store(now + interval_ms(), std::memory_order_relaxed);
  return true;
}

RH_INLINE bool much_is_free() {
  return g_arena.dirty_bytes() >= kWorthReturning || retained::is_much() || retained::freed() >= kWorthReturning ||
         retained::sparse() >= kWorthReturning;
}

// Called by threads that allocate: the helper returns it in their place. False when there is none.
bool leave_to_helper(Units surplus) {
  if (g_helper_runs.load(std::memory_order_relaxed) == 0 || g_stop.load(std::memory_order_relaxed) != 0) return false;
  raise_to(g_surplus, surplus.bytes());  // what waits there is part of it
  platform::wake(g_stop);
  return true;
}

// False when the helper is to end.
bool wait_for_next_look() {
  uint64_t look_at = platform::now_ms() + interval_ms();
  for (uint64_t now = 0; (now = platform::now_ms()) < look_at;) {
    size_t surplus = g_surplus.exchange(0, std::memory_order_relaxed);
    if (surplus != 0)
      g_arena.purge(0, Units::holding(surplus), kHelperToken);
    else
      platform::wait(g_stop, 0, look_at - now);
    if (g_stop.load(std::memory_order_acquire) != 0) return false;
  }
  return true;
}

// Whether spans were taken within the decay time.
class Activity {
 public:
  bool goes_on() {
    size_t before = taken_;
    taken_ = g_arena.figures().spans_taken;
    quiet_ = taken_ == before ? quiet_ + 1 : 0;
    return quiet_ < sparse::kLooks;
  }

 private:
  size_t taken_ = g_arena.figures().spans_taken;
  unsigned quiet_ = 0;
};

// To return memory that is taken again costs a fault for each page. It stays longer while others work; that the peak
// does not grow by it is seen to by Arena::find_surplus.
constexpr uint64_t kLonger = 4;

// The helper thread. It ends when little is left to return; whoever frees next starts another.
void help_until_idle() {
  uint32_t no = 0;
  Activity activity;
  do {
    size_t looks = 0;
    do {
      if (!wait_for_next_look()) break;
      if (retained::freed() >= kWorthReturning) looks = 0;
      limit::Haste haste = limit::look(kHelperToken);
      collect_all(kHelperToken, haste == limit::Haste::all ? kEverything : kOfHelper);
      uint64_t stay = activity.goes_on() ? kLonger * decay_ms() : decay_ms();
      g_arena.purge(haste != limit::Haste::none ? 0 : stay, Arena::kAll, kHelperToken);
      g_arena.return_address_space(kHelperToken);
    } while (++looks < kLooksAtLeast || much_is_free());
    g_helper_runs.store(0, std::memory_order_seq_cst);
    // What was freed just now may have counted on this thread: stay, unless another is about to start.
    no = 0;
  } while (g_stop.load() == 0 && much_is_free() && g_helper_runs.compare_exchange_strong(no, 1));
}

// Without a helper (none is wanted, or the system would not give a thread), those who free do its work now and then.
void decay_here() {
  if (!is_due(g_retry_at)) return;
  limit::Haste haste = limit::look(platform::thread_token());
  collect_all(platform::thread_token(), kOfPassers);
  retained::begin_count();
  g_arena.purge(haste != limit::Haste::none ? 0 : decay_ms());
  g_arena.return_address_space();
}

// Whether the program's only thread sees to it when it waits.
bool is_left_to_waits() { return g_waits_return.load(std::memory_order_relaxed) && platform::is_single_threaded(); }

// Whatever its age, and the address space it lay in when enough has come together.
void return_now(Units most) {
  size_t now = g_arena.purge(0, most);
  size_t purged = g_purged_here.fetch_add(now, std::memory_order_relaxed) + now;
  if (k64Bit || purged < kWorthReleasing) return;
  g_purged_here.store(0, std::memory_order_relaxed);
  g_arena.return_address_space();
}

// What is young when they stop freeing would stay for ever: little of it may.
void keep_little_young() {
  constexpr size_t kMostYoung = size_t{16} << 20;
  size_t dirty = g_arena.dirty_bytes();
  if (dirty <= kMostYoung || is_left_to_waits()) return;
  return_now(Units::holding(dirty - kMostYoung));
}

// A program that has made no thread gets none: what asks for a process of one thread (name spaces, raw forks, sandboxes
// that never saw a thread made) finds it so.
bool helper_is_wanted() { return g_unwanted.load() == 0 && !is_left_to_waits(); }

bool helper_may_start() {
  if (!helper_is_wanted()) return false;
  g_stop.store(0);
  return true;
}

bool make_helper() {
  g_leave_surplus.store(leave_to_helper, std::memory_order_relaxed);
  LockGuard guard(g_starting);
  // The one before may be on its last instructions.
  for (unsigned attempt = 0; attempt < 110 && helper_is_wanted(); ++attempt) {
    if (platform::start_helper(help_until_idle, helper_may_start)) return true;
    platform::back_off(attempt);
  }
  return false;
}

void start_helper() {
  uint32_t no = 0;
  if (helper_is_wanted()) {
    if (!g_helper_runs.compare_exchange_strong(no, 1, std::memory_order_relaxed)) return;
    if (make_helper()) return;
    g_helper_runs.store(0, std::memory_order_relaxed);
  }
  keep_little_young();
  decay_here();
}

// Whoever terminates all threads he does not know meets the helper too. There is none from then on: by the dead one's
// being gone others know that what it held may be taken.
void look_for_helper() {
  if (!is_due(g_look_at)) return;
  if (!g_starting.try_acquire(platform::thread_token())) return;
  if (platform::helper_is_lost()) {
    g_unwanted.fetch_add(1);
    g_helper_runs.store(0, std::memory_order_relaxed);
  }
  g_starting.release();
}

}  // namespace

void set_decay_ms(uint64_t decay_ms) { g_decay_ms.store(decay_ms, std::memory_order_relaxed); }

uint64_t decay_ms() { return g_decay_ms.load(std::memory_order_relaxed); }

RH_COLD static void note_much_free() {
  if (decay_ms() == 0 || g_arena.dirty_bytes() >= kMostWarm) return_now(Arena::kAll);
  if (inconsistent() || !much_is_free()) return;
  bool helped = g_helper_runs.load(std::memory_order_relaxed) != 0;
  if (helped && platform::kThreadsAreTerminated) look_for_helper();
  if (helped) return;
  if (decay_ms() == 0) return decay_here();
  if (platform::now_ms() >= g_retry_at.load(std::memory_order_relaxed))
    start_helper();
  else
    keep_little_young();
}

void note_free() {
  if (RH_UNLIKELY(decay_ms() == 0 || much_is_free())) note_much_free();
}

// Also what the calling thread holds back itself.
static void collect_everything() {
  ThreadToken token = platform::thread_token();
  if (Heap* heap = own_heap_if_any(); heap != nullptr) {
    let_go(heap);
    post_all(heap);
    LockGuard guard(heap->lock, token);
    empty_bins(heap);
  }
  collect_all(token, kEverything);
  // What threads had delayed that ended may be of heaps that were looked at before.
  if constexpr (kHardened) collect_all(token, kEverything);
}

void let_go_by(void (*let_go)(Heap*)) { g_let_go.store(let_go, std::memory_order_relaxed); }

bool reclaim() {
  if (inconsistent()) return false;
  size_t before = g_arena.figures().in_use;
  collect_everything();
  // What is purged becomes one with the purged memory beside it, which may be as long as is wanted.
  bool merged = g_arena.purge(0) != 0;
  return merged || g_arena.figures().in_use < before;
}

void collect_beside(Heap* heap) {
  if (Heap* own = own_heap_if_any()) let_go(own);
  ThreadToken token = platform::thread_token();
  if (heap->tag == 0) {
    collect(heap, token, kEverything);
    return;
  }
  for (Partition partition = 0; partition < kPartitions; ++partition)
    for (Heap* each = tags::heaps_of(heap->tag, partition); each != nullptr; each = each->next_of_tag)
      collect(each, token, kEverything);
}

size_t trim() {
  size_t before = sparse::returned();
  collect_everything();
  size_t returned = g_arena.purge(0);
  g_arena.return_address_space();
  return returned + sparse::returned() - before;
}

size_t trim_heap(Heap* heap) {
  ThreadToken token = platform::thread_token();
  size_t before = 0, after = 0;
  {
    LockGuard guard(heap->lock, token);
    if (inconsistent()) return 0;
    before = heap->account.held();
    collect_locked(heap, token, kEverything);
    after = heap->account.held();
  }
  sparse::look(heap, true, ~0u, token);
  note_free();
  return before > after ? before - after : 0;
}

// In handlers too. One may have interrupted the start of a helper: it is made, or not, and then ended. One that has
// interrupted its thread within the arena, where the helper may wait for that thread, does not wait for the helper:
// that ends when it gets on.
void do_without_helper() {
  ThreadToken token = platform::thread_token();
  bool within = g_starting.held_by(token);
  if (!within) g_starting.acquire(token);
  g_unwanted.fetch_add(1);
  g_stop.store(1);
  if (!within) g_starting.release();
  if (!g_arena.lock().held_by(token)) platform::stop_helper(g_stop);
}

WithoutHelper::WithoutHelper() { do_without_helper(); }

WithoutHelper::~WithoutHelper() { g_unwanted.fetch_sub(1); }

// What a signal handler interrupted may hold the lock.
static bool may_return_here() { return is_left_to_waits() && !g_arena.lock().held_by(platform::thread_token()); }

void let_waits_return() { g_waits_return.store(true, std::memory_order_relaxed); }

bool returns_before_waiting() {
  if (!much_is_free() || inconsistent() || !may_return_here()) return false;
  decay_here();
  return much_is_free();
}

bool return_while_waiting() {
  constexpr Units kMost = Units::holding(size_t{64} << 20);
  if (!may_return_here()) return false;
  const Left left = collect_all(platform::thread_token(), kWhileWaiting);
  if (g_arena.purge(0, kMost) >= kMost.bytes() || left.slabs) return true;
  g_arena.purge(0);
  g_arena.return_address_space();
  return false;
}

void after_fork_in_child() {
  platform::forget_helper();
  g_helper_runs.store(0, std::memory_order_relaxed);
  g_starting.release();
}

}  // namespace rh::idle
