#include "heap/watch.h"

#include "base/chance.h"

namespace rh::watch {

constinit std::atomic<uint64_t> g_guarded_every{0};

namespace {

constinit std::atomic<unsigned> g_watchers{0};

void fill_table(bool watched) {
  platform::Unset& unset = platform::g_unset;
  for (size_t size = 0; size <= kTableMax; ++size)
    unset.classes[size].store(watched ? passed_bin(size_class::kTable[size]) : size_class::kTable[size]);
  unset.medium_sizes.store(watched ? 0 : kMaxSmall - kTableMax);
}

// Who changes the watchers fills the table until it agrees with them: of several who do so at once the last to finish
// leaves it right.
void update_table() {
  unsigned watchers = 0;
  do {
    watchers = g_watchers.load();
    fill_table(watchers != 0);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  } while (watchers != g_watchers.load());
}

// How far it is to the next that is chosen, itself included.
int64_t draw(Watched& watched, uint64_t every) { return every == 0 ? INT64_MAX : chance::draw(watched.random, every); }
int64_t draw_guarded(Watched& watched) { return watched.guarded_every == 1 ? 1 : draw(watched, watched.guarded_every); }

// So many are passed at once: until they are used up a thread does not hear that others are to be chosen.
constexpr unsigned kMostPassed = 1024;

// How many allocations of that class can be passed.
unsigned most_passed(const Watched& watched, SizeClass size_class) {
  if (kExactSizes && size_class == 0) return 0;  // the fast path tells these by their bin
  const Watched::Next& next = watched.next[size_class];
  const unsigned most = next.guarded <= kMostPassed ? static_cast<unsigned>(next.guarded - 1) : kMostPassed;
  const size_t size = size_class::size_of(size_class);
  if (next.sampled > int64_t{most} * static_cast<int64_t>(size)) return most;
  return static_cast<unsigned>(next.sampled - 1) / static_cast<unsigned>(size);
}

// Counts allocations of the class as looked at, or, of a negative number, as still to come.
void count(Heap* heap, SizeClass size_class, int64_t allocations) {
  Watched::Next& next = heap->watched.next[size_class];
  next.guarded -= allocations;
  next.sampled -= allocations * size_class::kProperties[size_class].size;
}

// Cuts off a bin's list behind its first blocks, as many as can be passed, and gives the rest. Sets how many these are.
Block* cut(Block* first, unsigned most, unsigned* count) {
  Block* last = first;
  for (*count = 1; *count != most && last->next != nullptr; ++*count) last = last->next;
  Block* rest = last->next;
  last->next = nullptr;
  return rest;
}

// The slab, if it is the current one of the class, whose blocks come into the bin when they are freed.
Span* slab_that_fills(const Block* block, SizeClass size_class) {
  Span* slab = slab::head(g_realm.span_of(block));
  const bool fills = !kHardened && slab->bin.load() == size_class && slab->armed.load() == slab::kUncounted;
  return fills ? slab : nullptr;
}

// Counts again what was passed and will have no block. Under the lock.
void take_unserved_back(Heap* heap, SizeClass size_class) {
  stop_serving_passed(heap, heap->current[size_class]);
  count(heap, size_class, -int64_t{heap->unserved[size_class]});
  heap->unserved[size_class] = 0;
}

void take_all_back(Heap* heap) {
  LockGuard guard(heap->lock, heap->token.load());
  for (size_t index = 0; index < size_class::kCount; ++index) take_back(heap, static_cast<SizeClass>(index));
}

}  // namespace

void begin(Watcher watcher) {
  g_watchers.fetch_or(static_cast<unsigned>(watcher));
  update_table();
}

void end(Watcher watcher) {
  g_watchers.fetch_and(~static_cast<unsigned>(watcher));
  update_table();
}

void look_at_passed() {
  Heap* own = own_heap_if_any();
  if (own == nullptr) return;
  take_all_back(own);
  for (Heap* heap = own->tagging.heaps; heap != nullptr; heap = heap->next_beside) take_all_back(heap);
}

void draw_anew(Heap* heap) {
  take_all_back(heap);
  Watched& watched = heap->watched;
  if (watched.random == 0) watched.random = platform::random_secret() | 1;
  watched.guarded_every = guarded_every();
  watched.sampled_every = profile::every();
  for (Watched::Next& next : watched.next) next = {draw_guarded(watched), draw(watched, watched.sampled_every)};
}

Choice choose(Watched& watched, Watched::Next& next, size_t size, size_t taken) {
  const bool guard_is_due = next.guarded <= 0, sample_is_due = next.sampled <= 0;
  if (guard_is_due) next.guarded = draw_guarded(watched);
  // The chosen byte may be one that the program did not ask for.
  const bool asked_for = next.sampled + static_cast<int64_t>(taken - size) <= 0;
  if (sample_is_due) next.sampled = draw(watched, watched.sampled_every);
  return {guard_is_due && watched.guarded_every != 0, sample_is_due && asked_for && watched.sampled_every != 0};
}

bool is_next_chosen(const Heap* heap) {
  const Watched& watched = heap->watched;
  return watched.sampled_every != 0 && watched.sampled_every == profile::every() &&
         watched.next[Watched::kLarge].sampled <= 0;
}

// A thread may be terminated anywhere: blocks that are in no bin are lost, in two bins they would be handed out twice.
void pass(Heap* heap, SizeClass size_class, const slab::Taken& taken) {
  Block *first = heap->bins[size_class], *rest = nullptr;
  Span* slab = slab_that_fills(taken.blocks, size_class);
  const unsigned most = first != nullptr || slab != nullptr ? most_passed(heap->watched, size_class) : 0;
  if (most == 0) return;
  unsigned passed = 0;
  if (first != nullptr) {
    const bool known = taken.count != 0 && first == taken.blocks->next;  // not where frees came between
    passed = taken.count - 1u;
    if (!known || passed > most) rest = cut(first, most, &passed);
    heap->bins[size_class] = rest;
    std::atomic_signal_fence(std::memory_order_release);
    heap->bins[passed_bin(size_class)] = first;
  }
  if (slab != nullptr && rest == nullptr && passed < most) {
    slab->countdown.store(static_cast<uint16_t>(most - passed));
    slab->bin.store(passed_bin(size_class));
    passed = most;
  }
  count(heap, size_class, passed);
}

void settle(Heap* heap, SizeClass size_class) {
  LockGuard guard(heap->lock, heap->token.load());
  if (!inconsistent()) take_unserved_back(heap, size_class);
}

// Where a refill while nobody watched began another count, it says nothing.
void stop_serving(Heap* heap, Span* slab) {
  const SizeClass size_class = slab::class_of(slab);
  slab->bin.store(size_class);
  const uint16_t left = slab->countdown.load();
  if (slab->armed.load() == slab::kUncounted && left <= kMostPassed) heap->unserved[size_class] = left;
}

void take_back(Heap* heap, SizeClass size_class) {
  take_unserved_back(heap, size_class);
  Block* first = heap->bins[passed_bin(size_class)];
  if (first == nullptr) return;
  heap->bins[passed_bin(size_class)] = nullptr;
  std::atomic_signal_fence(std::memory_order_release);
  Block* last = first;
  int64_t unused = 1;
  for (; last->next != nullptr; last = last->next) ++unused;
  last->next = heap->bins[size_class];
  std::atomic_signal_fence(std::memory_order_release);
  heap->bins[size_class] = first;
  count(heap, size_class, -unused);
}

}  // namespace rh::watch
