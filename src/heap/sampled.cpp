#include "heap/sampled.h"

#include "heap/accounts.h"
#include "heap/registry.h"
#include "heap/tags.h"
#include "heap/watch.h"

namespace rh::sampled {

namespace {

// One for each tag.
RH_RARE_ZEROS constinit std::atomic<Heap*> g_sampled_heaps[tags::kMost + 1] = {};

// It is in the list of heaps already.
void set_up(Heap* heap, tags::Tag tag, bool sampled) {
  LockGuard guard(registry::lock());
  heap->sampled = sampled;
  heap->tag = static_cast<uint8_t>(tag);
  heap->tag_account = tag != tags::kUntagged ? &tags::account_of(tag) : nullptr;
}

const void* start_of_block(const Span* large) { return reinterpret_cast<const void*>(g_realm.address(large)); }

}  // namespace

bool is_sampled(const Span* large) { return large::has_owner(large) && large::lister_of(large)->sampled; }

void start(uint64_t every) {
  profile::start(every);
  watch::begin(watch::Watcher::profile);
}

void stop() {
  profile::stop();
  watch::end(watch::Watcher::profile);
}

void set_every(uint64_t every) {
  if (profile::every() == 0) return;
  profile::set_every(every);
  watch::begin(watch::Watcher::profile);
}

Heap* heap() {
  const tags::Tag tag = tags::in_force();
  std::atomic<Heap*>& place = g_sampled_heaps[tag];
  Heap* heap = place.load(std::memory_order_acquire);
  if (heap != nullptr) return heap;
  Heap* made = shared::create();
  if (made == nullptr) return nullptr;
  set_up(made, tag, true);
  if (place.compare_exchange_strong(heap, made, std::memory_order_acq_rel)) return made;
  set_up(made, tags::kUntagged, false);
  shared::destroy(made);
  return heap;
}

bool must_move(const BlockAt& large, size_t size) {
  const size_t present = large.usable_size();
  Heap* used = heap_in_use_if_any();
  if (size <= present || used == nullptr || is_sampled(large.span)) return false;
  if (!watch::look_at(used, Watched::kLarge, size - present, size - present).sampled) return false;
  watch::choose_next(used);
  return true;
}

bool must_be_copied() {
  const Heap* used = heap_in_use_if_any();
  return used != nullptr && watch::is_next_chosen(used);
}

void note_free(const Span* large) {
  if (is_sampled(large)) profile::note_free(start_of_block(large));
}

void note_resize(const Span* large, size_t size) {
  if (!is_sampled(large)) return;
  const void* block = start_of_block(large);
  profile::tell_gone(block);
  profile::note_resize(block, size, profile::every());
  profile::tell_there(block);
}

// The profile hears of it before anybody else can get the memory that is left.
bool move(Span* large, Span* target, size_t size, Units lent) {
  Heap* heap = large::lister_of(large);
  const void *from = start_of_block(large), *to = start_of_block(target);
  const Units before{large->units}, after{target->units};
  shared::unlist_large(large);
  profile::tell_gone(from);
  profile::note_move(from, to);
  const bool moved = large::move(large, target, lent);
  if (moved) {
    accounts::exchange(heap, before, after);
    profile::note_resize(to, size, profile::every());
  } else {
    profile::note_move(to, from);
  }
  profile::tell_there(moved ? to : from);
  shared::relist_large(heap, moved ? target : large);
  return moved;
}

void forget_heap() {
  for (std::atomic<Heap*>& heap : g_sampled_heaps)
    if (heap.load(std::memory_order_relaxed) != nullptr) heap.store(nullptr, std::memory_order_relaxed);
}

}  // namespace rh::sampled
