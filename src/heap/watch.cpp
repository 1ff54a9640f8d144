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

// How many allocations of that class can be passed.
unsigned most_passed(const Watched& watched, SizeClass size_class) {
  const size_class::Properties& own = size_class::kProperties[size_class];
  if (kExactSizes && size_class == 0) return 0;  // the fast path tells these by their bin
  const Watched::Next& next = watched.next[size_class];
  const unsigned most = next.guarded <= own.carve ? static_cast<unsigned>(next.guarded - 1) : own.carve;
  if (next.sampled > int64_t{most} * own.size) return most;
  return static_cast<unsigned>(next.sampled - 1) / own.size;
}

}  // namespace

void begin(Watcher watcher) {
  if (Heap* own = own_heap_if_any(); own != nullptr) {
    take_all_back(own);
    for (Heap* heap = own->tagging.heaps; heap != nullptr; heap = heap->next_beside) take_all_back(heap);
  }
  g_watchers.fetch_or(static_cast<unsigned>(watcher));
  update_table();
}

void end(Watcher watcher) {
  g_watchers.fetch_and(~static_cast<unsigned>(watcher));
  update_table();
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
void pass(Heap* heap, SizeClass size_class) {
  const unsigned most = most_passed(heap->watched, size_class);
  Block *first = heap->bins[size_class], *last = first;
  if (first == nullptr || most == 0) return;
  unsigned left = most - 1;
  for (; left != 0 && last->next != nullptr; --left) last = last->next;
  const unsigned count = most - left;
  heap->bins[size_class] = last->next;
  std::atomic_signal_fence(std::memory_order_release);
  last->next = nullptr;
  std::atomic_signal_fence(std::memory_order_release);
  heap->bins[passed_bin(size_class)] = first;
  Watched::Next& next = heap->watched.next[size_class];
  next.guarded -= count;
  next.sampled -= int64_t{count} * size_class::kProperties[size_class].size;
}

void take_back_passed(Heap* heap, SizeClass size_class) {
  Block *first = heap->bins[passed_bin(size_class)], *last = first;
  heap->bins[passed_bin(size_class)] = nullptr;
  std::atomic_signal_fence(std::memory_order_release);
  int64_t count = 1;
  for (; last->next != nullptr; last = last->next) ++count;
  last->next = heap->bins[size_class];
  std::atomic_signal_fence(std::memory_order_release);
  heap->bins[size_class] = first;
  Watched::Next& next = heap->watched.next[size_class];
  next.guarded += count;
  next.sampled += count * size_class::kProperties[size_class].size;
}

void take_all_back(Heap* heap) {
  for (size_t index = 0; index < size_class::kCount; ++index) take_back(heap, static_cast<SizeClass>(index));
}

}  // namespace rh::watch
