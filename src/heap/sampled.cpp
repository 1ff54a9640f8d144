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

bool is_of_program(const Span* large) { return shared::heap_of(large) != nullptr; }

// Those who free in the heap that is bound to them would not ask.
void make_frees_ask(Heap* heap, const void* block) {
  const BlockAt at = find_block(block);
  if (!at.is_small() || !is_bound(heap)) return;
  LockGuard guard(heap->lock);
  at.span->owner.store_release(with_note(at.span->owner.load(), kKnown));
}

bool is_of(const void* block, const void* heap) {
  const BlockAt at = find_block(block);
  return at.span != nullptr && shared::heap_of(at.span) == heap;
}

// It is as likely to be known as one that was made so long.
void look_at_growth(const Span* large, size_t more, size_t size) {
  Heap* own = own_heap_if_any();
  if (own == nullptr || !watch::look_at(own, Watched::kOfHeaps, more, more).sampled) return;
  note_in_heap(large::lister_of(large), start_of_block(large), size, own->watched.sampled_every);
}

}  // namespace

RH_AT_START bool is_sampled(const Span* large) { return large::has_owner(large) && large::lister_of(large)->sampled; }

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
  watch::look_at_passed();
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
  if (size <= present || used == nullptr || is_sampled(large.span) || is_of_program(large.span)) return false;
  if (!watch::look_at(used, Watched::kLarge, size - present, size - present).sampled) return false;
  watch::choose_next(used);
  return true;
}

bool must_be_copied() {
  const Heap* used = heap_in_use_if_any();
  return used != nullptr && watch::is_next_chosen(used);
}

void tell_resize(const Span* large, size_t before, size_t size) {
  if (!large::has_owner(large)) return;
  if (profile::has_noted() && profile::note_resize(start_of_block(large), size, profile::every())) return;
  if (watch::is_on() && size > before && is_of_program(large)) look_at_growth(large, size - before, size);
}

void note_in_heap(Heap* heap, const void* block, size_t size, uint64_t every) {
  if (!heap->known.load()) heap->known.store(true);
  make_frees_ask(heap, block);
  profile::note_allocation(block, size, every);
}

void note_end(Heap* heap) {
  if (RH_LIKELY(!heap->known.load())) return;
  profile::note_free_each(is_of, heap);
  heap->known.store(false);
}

// The profile hears of it before anybody else can get the memory that is left.
bool move(Span* large, Span* target, size_t size, Units lent) {
  Heap* heap = large::lister_of(large);
  const void *from = start_of_block(large), *to = start_of_block(target);
  const Units before{large->units}, after{target->units};
  shared::unlist_large(large);
  profile::begin_move(from, to);
  const bool moved = large::move(large, target, lent);
  if (moved) {
    accounts::exchange(heap, before, after);
    profile::end_move(to, size, profile::every());
  } else {
    profile::cancel_move(from, to);
  }
  shared::relist_large(heap, moved ? target : large);
  return moved;
}

void forget_heap() {
  for (std::atomic<Heap*>& heap : g_sampled_heaps)
    if (heap.load(std::memory_order_relaxed) != nullptr) heap.store(nullptr, std::memory_order_relaxed);
}

}  // namespace rh::sampled
