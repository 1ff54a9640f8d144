#include "heap/refill.h"

#include "arena/bars.h"
#include "heap/books.h"
#include "heap/registry.h"
#include "heap/remote.h"
#include "heap/retained.h"
#include "heap/slab_lists.h"
#include "heap/spans.h"
#include "heap/sparse.h"
#include "heap/watch.h"

namespace rh {

// No other slab gets the same for a long time, whichever heap's.
static uint32_t slab_number(const Heap* heap) {
  constexpr uint32_t kScatter = 0x9e3779b1;  // odd: two slabs of one heap differ
  uint64_t home = address_of(heap) / 64 + (uint64_t{heap->life} << 20);
  return static_cast<uint32_t>(heap->slabs_taken.value()) * kScatter + static_cast<uint32_t>(home ^ home >> 32);
}

static Span* take_slab(Heap* heap, SizeClass size_class, Units units) {
  const bool dense = size_class::size_of(size_class) <= platform::page_size();
  const spans::Use use = dense ? spans::Use::dense_slab : spans::Use::slab;
  auto open = [](Span* taken) { return bars::put_at_end(taken, bars::Elsewhere::goes); };
  Span* span = spans::take_open(heap, units, use, heap->token.load(), open);
  if (span == nullptr) return nullptr;
  if (span->zero) sparse::note_growth(heap);
  slab::start(span, size_class, heap, slab_number(heap));
  return span;
}

// The slab to go on with when there is none available.
RH_NOINLINE static Span* fresh_slab(Heap* heap, SizeClass size_class, const Span* used_up) {
  heap->slabs_taken.add(1);
  const Units least = size_class::shortest_slab(size_class), most{size_class::kProperties[size_class].units};
  Units units = used_up != nullptr ? Units{used_up->units} + least : least;
  if (most < units) units = most;
  if (!heap->shared && !heap->store.has(units)) give_up_unused(heap, size_class);
  if (!heap->shared && !heap->store.has(units)) {
    registry::adopt_slabs(heap, size_class);
    if (Span* slab = pop_available(heap, size_class)) return slab;
  }
  Span* slab = take_slab(heap, size_class, units);
  return slab == nullptr && least < units ? take_slab(heap, size_class, least) : slab;
}

RH_NOINLINE static slab::Taken take_little(Heap* heap, Span* slab) {
  SizeClass size_class = slab::class_of(slab);
  unsigned uses = heap->uses[size_class];
  // In the program's hands when it has got the first of what is taken now; the bin is empty.
  unsigned in_use = slab::outstanding(slab) + 1;
  slab::Taken taken{};
  // Where the blocks made at a time are but one, a second would lie in the bin while the thread sleeps.
  bool fresh = uses < kFewBlocks || (uses == kFewBlocks && slab::properties(slab).carve > 1);
  if (fresh) taken = slab::carve(slab, uses < kFewBlocks ? 1u << uses : slab::kAll);
  if (taken.blocks == nullptr) taken = slab::take(slab);
  if (taken.blocks == nullptr) return taken;
  note_use(heap, size_class);
  slab::arm(slab, has_few_blocks(heap, size_class) ? 1 : in_use);
  return taken;
}

// Puts the next slab in the place of the current one, which has no more blocks. False, and there is none, when memory
// is short.
static bool change_current(Heap* heap, SizeClass size_class) {
  Span* used_up = heap->current[size_class];
  RH_CHECK(heap->bins[size_class] == nullptr && heap->bins[passed_bin(size_class)] == nullptr);
  if (used_up != nullptr) set_aside(heap, used_up);
  Span* slab = pop_available(heap, size_class);
  if (slab == nullptr) slab = fresh_slab(heap, size_class, used_up);
  if (slab == nullptr) {
    take_current(heap, size_class);
    return false;
  }
  make_current(heap, slab);
  if (used_up == nullptr) {
    retained::add(bytes_of(slab));
    heap->had_slabs.add(size_class);
  }
  return true;
}

static slab::Taken take_from_current(Heap* heap, SizeClass size_class) {
  Span* slab = heap->current[size_class];
  if (RH_UNLIKELY(slab == nullptr)) return {nullptr, false};
  if (RH_UNLIKELY(is_seldom_used(heap, size_class))) return take_little(heap, slab);
  return slab::take(slab);
}

RH_INLINE static slab::Taken fill_bin(Heap* heap, SizeClass size_class, slab::Taken taken) {
  slab::of_unwritten(taken.blocks);
  heap->bins[size_class] = taken.blocks->next;
  taken.blocks->mark = 0;
  if constexpr (kDebugChecks) books::check_class(heap, size_class);
  return taken;
}

// The current slab, if there is one, has no more.
RH_NOINLINE static slab::Taken take_from_next(Heap* heap, SizeClass size_class) {
  slab::Taken taken{};
  while (taken.blocks == nullptr && change_current(heap, size_class)) taken = take_from_current(heap, size_class);
  return RH_LIKELY(taken.blocks != nullptr) ? fill_bin(heap, size_class, taken) : taken;
}

// The slab to take from when nothing else is to be done first.
RH_INLINE static Span* slab_at_hand(const Heap* heap, SizeClass size_class) {
  if (RH_UNLIKELY(heap->inbox.load(std::memory_order_relaxed) != nullptr)) return nullptr;
  return RH_UNLIKELY(is_seldom_used(heap, size_class)) ? nullptr : heap->current[size_class];
}

RH_NOINLINE static slab::Taken refill_otherwise(Heap* heap, SizeClass size_class) {
  if (heap->inbox.load(std::memory_order_relaxed) != nullptr) drain(heap, {heap->token.load(), true});
  slab::Taken taken = take_from_current(heap, size_class);
  return RH_LIKELY(taken.blocks != nullptr) ? fill_bin(heap, size_class, taken) : take_from_next(heap, size_class);
}

// What was passed while allocations were watched, or is given by a class that lends.
RH_NOINLINE static slab::Taken refill_with_passed(Heap* heap, SizeClass size_class) {
  watch::take_back(heap, size_class);
  return {pop(heap, size_class), false};
}

slab::Taken refill(Heap* heap, SizeClass size_class) {
  if (RH_UNLIKELY(heap->bins[passed_bin(size_class)] != nullptr)) return refill_with_passed(heap, size_class);
  heap->refills.add(1);
  Span* slab = slab_at_hand(heap, size_class);
  if (RH_UNLIKELY(slab == nullptr)) return refill_otherwise(heap, size_class);
  if (slab::free_blocks(slab) == 0) return take_from_next(heap, size_class);
  slab::Taken taken = slab::take(slab);
  if (RH_UNLIKELY(taken.blocks == nullptr)) return refill_otherwise(heap, size_class);
  return fill_bin(heap, size_class, taken);
}

}  // namespace rh
