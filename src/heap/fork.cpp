#include "heap/fork.h"

#include <new>

#include "heap/abandoned.h"
#include "heap/accounts.h"
#include "heap/idle.h"
#include "heap/regions.h"
#include "heap/registry.h"
#include "heap/relief.h"
#include "heap/remote.h"
#include "heap/sampled.h"
#include "heap/slab_lists.h"
#include "platform/platform.h"
#include "platform/report.h"
#include "profile/profile.h"

namespace rh::fork {

namespace {

// A thread that was interrupted holding what others wait for must not wait for them.
constexpr uint64_t kNestedPatienceMs = 1;

// Forks follow each other. One that waits this long is in a circle with another, by way of somebody else's lock.
constexpr uint64_t kTurnPatienceMs = 2000;

// Without the registry's lock the child can free nothing for the rest of its life. Who trims memory holds it while one
// first-class heap gives pages back, waiting for no other lock, so that this is no circle; but for a thread that was
// interrupted holding it and forks: that waits longer still, for its turn.
constexpr uint64_t kRegistryPatienceMs = 1000;

// One fork at a time; held with the forking thread's own token.
constinit Lock g_turn{LockRank::fork_turn};

// Of the fork under way.
struct Fork {
  uint32_t breaks_before;
  bool in_arena;     // the forking thread was interrupted holding the arena's lock
  bool holds_arena;  // it does now
  bool holds_profile;
  Heap* threads;
  Heap* shared_heaps;
  RealmCopy realm;
};
constinit Fork g_fork = {};

// How far this thread's fork has come. A child of one that could not be prepared (its turn never came, or a handler
// forked within the preparation) is sure of nothing.
enum class Stage : uint8_t { none, preparing, prepared };
constinit RH_OF_FORKING_THREAD Stage t_stage = Stage::none;
constinit RH_OF_FORKING_THREAD unsigned t_depth = 0;  // of forks in handlers that interrupt this thread's fork

template <typename Visit> void for_each_heap(Visit visit) {
  for (Heap* heap = registry::threads(); heap != nullptr; heap = heap->next) visit(heap);
  for (Heap* heap = registry::shared_heaps(); heap != nullptr; heap = heap->next) visit(heap);
}

// ---- before -------------------------------------------------------------------------------------

// Its own heap's lock nobody waits for.
bool is_waited_for(ThreadToken token) { return g_arena.lock().held_by(token) || registry::lock().held_by(token); }

bool hold(Lock& lock, ThreadToken token, uint64_t patience_ms) {
  return lock.held_by(token) || lock.acquire_within(patience_ms, kForkToken);
}

bool hold_registry(ThreadToken token, uint64_t patience_ms) {
  return registry::lock().held_by(token) || registry::acquire_for_fork(patience_ms);
}

void note_breaks() {
  std::atomic<uint32_t>* breaks = g_fork_breaks.load(std::memory_order_relaxed);
  if (breaks == nullptr) {
    breaks = platform::make_shared_counter();
    g_fork_breaks.store(breaks, std::memory_order_release);
  }
  g_fork.breaks_before = breaks != nullptr ? breaks->load(std::memory_order_relaxed) : 0;
}

void note_heap(Heap* heap, bool held) {
  heap->is_forking = is_mine(heap) || (!heap->shared && heap->ownership.is_mine());
  heap->is_at_rest = !is_bound(heap) && heap->ownership.is_free();
  heap->next_at_fork = heap->next;
  // What an earlier fork noted of a heap is still right where nobody has owned it since.
  bool stands = held && heap->fork_state == ForkState::to_restore;
  if (!stands) heap->fork_state = held ? ForkState::whole : ForkState::missed;
}

// Its owner adds to the list at this end only, and takes it as a whole only under the heap's lock.
#if defined(__clang__)
[[clang::no_sanitize("thread")]]
#endif
void note_free_list(Span* slab) {
  const Block* first = *const_cast<Block* const volatile*>(&slab->free);
  BlockPosition note = first == nullptr ? kNoPosition : slab::position_of(slab, first);
  if (slab->freed.at_fork != note) slab->freed.at_fork = note;
}

// Whether one thread changes what others do not, without the lock.
bool has_owner(const Heap* heap) { return !heap->shared || is_bound(heap); }

bool wants_notes(const Heap* heap) {
  return has_owner(heap) && !heap->is_forking && !heap->is_at_rest && heap->fork_state == ForkState::whole;
}

void note_free_lists() {
  bool wanted = false;
  for_each_heap([&wanted](const Heap* heap) { wanted |= wants_notes(heap); });
  if (!wanted) return;
  g_realm.each_span([](Span* span) {
    if (span->kind.load() != SpanKind::slab) return;
    const Heap* owner = owner_of(span);
    if (owner != nullptr && wants_notes(owner)) note_free_list(span);
  });
}

// ---- in the child -------------------------------------------------------------------------------

bool was_broken() {
  std::atomic<uint32_t>* breaks = g_fork_breaks.load(std::memory_order_relaxed);
  return breaks != nullptr && breaks->load(std::memory_order_seq_cst) != g_fork.breaks_before;
}

bool is_missed(const Heap* heap) { return heap->fork_state == ForkState::missed; }

// An empty heap in the place of one that may be half-changed.
void renew(Heap* heap) {
  bool shared = heap->shared, sampled = heap->sampled, is_forking = heap->is_forking;
  uint16_t life = heap->life;
  uint64_t number = heap->number;
  Tenant tenant = heap->tenant.load();
  Heap* home = heap->home.load();
  Heap *next = heap->next, *previous = heap->previous;
  Heap* next_of_tag = heap->next_of_tag;
  uint8_t tag = heap->tag, partition = heap->partition;
  Heap* next_beside = heap->next_beside;
  Tagging tagging = heap->tagging;
  Account* tag_account = heap->tag_account;
  size_t peak = heap->account.peak(), limit = heap->account.limit(), refused = heap->account.refused();
  forget_sparse(heap);
  accounts::forget_held(heap);
  heap = new (heap) Heap;
  heap->next_of_tag = next_of_tag;
  heap->tag = tag;
  heap->partition = partition;
  heap->next_beside = next_beside;
  heap->tagging = tagging;
  heap->tag_account = tag_account;
  heap->account.restart(peak, limit, refused);
  heap->shared = shared;
  heap->sampled = sampled;
  heap->life = life;
  heap->number = number;
  heap->tenant.store(tenant);
  heap->home.store(home);
  heap->is_forking = is_forking;
  heap->next = next;
  heap->previous = previous;
}

// What could not be held, or was taken from the fork, is left as it is.
void give_up_missed(bool broken, ThreadToken token) {
  if (broken) {
    registry::go_back_to(g_fork.threads, g_fork.shared_heaps);
    // Nobody took what this thread was interrupted in.
    for_each_heap([token](Heap* heap) {
      bool own = heap == own_heap_if_any() || heap->lock.held_by(token);
      if (!own) heap->fork_state = ForkState::missed;
    });
  }
  if (!g_fork.in_arena && (broken || !g_fork.holds_arena)) {
    // A thread that was making memory usable goes on with it in the child.
    if (!g_arena.is_growing(token)) g_realm.go_back_to(g_fork.realm);
    g_arena.start_over(token);
  }
  abandoned::leak_slabs(is_missed);
  if (Heap* own = own_heap_if_any()) forget_leaked(own);
  for_each_heap([](Heap* heap) {
    if (is_missed(heap)) renew(heap);
  });
}

bool missed_any(bool broken) {
  bool missed = broken || !g_fork.holds_arena;
  for_each_heap([&missed](Heap* heap) { missed |= is_missed(heap); });
  return missed;
}

// Its thread was using the blocks in its bins, and those on their way to others, while the child was made.
void leave_behind(Heap* heap) {
  for (Block*& bin : heap->bins) bin = nullptr;
  for (Outgoing& out : heap->outgoing) out.clear();
  for (Parcel& parcel : heap->parcels) parcel = {};
  heap->held = 0;
  heap->fork_state = ForkState::to_restore;
}

void take_along(Heap* heap) {
  if (!heap->is_forking && !heap->is_at_rest) leave_behind(heap);
  if (heap->shared) return;
  heap->ownership.reset();
  if (heap->is_forking) heap->ownership.try_acquire();
}

void release_lock(Lock& lock, ThreadToken token) {
  if (!lock.held_by(token)) lock.release();
}

}  // namespace

static bool prepare(ThreadToken token) {
  const bool nested = is_waited_for(token);
  const uint64_t patience_ms = nested ? kNestedPatienceMs : kForkPatienceMs;
  if (!g_turn.acquire_within(kTurnPatienceMs, token)) return false;
  note_breaks();
  if (!hold_registry(token, nested ? kNestedPatienceMs : kRegistryPatienceMs)) return false;
  g_fork.threads = registry::threads();
  g_fork.shared_heaps = registry::shared_heaps();
  for_each_heap([&](Heap* heap) { note_heap(heap, hold(heap->lock, token, patience_ms)); });
  regions::before_fork(token, patience_ms);
  g_fork.in_arena = g_arena.lock().held_by(token);
  g_fork.holds_arena = hold(g_arena.lock(), token, patience_ms);
  g_fork.holds_profile = hold(profile::lock(), token, patience_ms);
  for_each_heap([](Heap* heap) {
    heap->inbox_at_fork = heap->inbox.load(std::memory_order_acquire);
    heap->span_inbox_at_fork = heap->span_inbox.load(std::memory_order_acquire);
  });
  g_fork.realm.take();
  note_free_lists();
  return true;
}

void before() {
  if (t_depth++ != 0) return;
  t_stage = Stage::preparing;
  if (prepare(platform::thread_token())) t_stage = Stage::prepared;
}

void after_in_parent() {
  if (t_depth == 0 || --t_depth != 0) return;
  if (t_stage == Stage::prepared) {
    profile::lock().release_after_fork();
    g_arena.lock().release_after_fork();
    regions::after_fork_in_parent(platform::thread_token());
    for_each_heap([](Heap* heap) { heap->lock.release_after_fork(); });
    registry::lock().release_after_fork();
  }
  t_stage = Stage::none;
  if (g_turn.held_by(platform::thread_token())) g_turn.release();
}

static void start_child(ThreadToken token) {
  bool broken = was_broken();
  if (missed_any(broken)) give_up_missed(broken, token);
  if (broken) sampled::forget_heap();
  if (!g_fork.holds_profile || (broken && !profile::lock().held_by(token))) profile::begin_anew();
  for_each_heap([](Heap* heap) {
    if (is_missed(heap)) return;
    heap->inbox.store(heap->inbox_at_fork, std::memory_order_relaxed);
    heap->span_inbox.store(heap->span_inbox_at_fork, std::memory_order_relaxed);
  });
  g_arena.after_fork_in_child();
}

void after_in_child() {
  ThreadToken token = platform::thread_token();
  const bool sure = t_stage == Stage::prepared && !was_broken();
  if constexpr (kDebugChecks) lock_order::forget_others(token);
  profile::forget_others(token);
  leave_reports_of_others(token);
  if (t_stage == Stage::prepared)
    start_child(token);
  else
    g_inconsistent.store(true, std::memory_order_relaxed);
  for_each_heap([token](Heap* heap) {
    if (has_owner(heap)) take_along(heap);
    release_lock(heap->lock, token);
  });
  regions::after_fork_in_child(token, !sure);
  release_lock(profile::lock(), token);
  release_lock(g_arena.lock(), token);
  release_lock(registry::lock(), token);
  g_turn.release();
  g_fork_breaks.store(nullptr, std::memory_order_relaxed);
  t_stage = Stage::none;
  t_depth = 0;
  idle::after_fork_in_child();
  relief::after_fork_in_child();
}

RH_AT_START void watch() {
  static constinit std::atomic<bool> watches{false};
  if (!watches.exchange(true, std::memory_order_relaxed)) platform::on_fork(before, after_in_parent, after_in_child);
}

}  // namespace rh::fork
