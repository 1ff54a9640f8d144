#include "heap/slab_lists.h"

#include "heap/books.h"
#include "heap/retained.h"
#include "heap/spans.h"
#include "heap/watch.h"

namespace rh {

Span* take_current(Heap* heap, SizeClass size_class) {
  Span* slab = heap->current[size_class];
  heap->current[size_class] = nullptr;
  watch::stop_serving_passed(heap, slab);
  if (slab != nullptr) retained::subtract(bytes_of(slab));
  return slab;
}

static SpanList& available_like(Heap* heap, const Span* slab) { return heap->available[slab::class_of(slab)]; }

// Told in steps: others write to what they know of.
static void note_sparse(Heap* heap, Units units) {
  constexpr Units kStep = Units::holding(256 << 10);
  heap->sparse = units;
  Units told = heap->sparse_told;
  if (units < told + kStep && told < units + kStep) return;
  retained::add_sparse(units.bytes() - told.bytes());
  heap->sparse_told = units;
}

void forget_sparse(Heap* heap) {
  retained::add_sparse(0 - heap->sparse_told.bytes());
  heap->sparse = heap->sparse_told = {};
}

static void make_sparse(Heap* heap, Span* slab) {
  if (slab->state == SlabState::sparse) return;
  slab->state = SlabState::sparse;
  note_sparse(heap, heap->sparse + Units{slab->units});
}

// It is in no list.
static void unmake_sparse(Heap* heap, Span* slab) {
  if (slab->state != SlabState::sparse) return;
  slab->state = SlabState::available;
  note_sparse(heap, heap->sparse - Units{slab->units});
}

void make_available(Heap* heap, Span* slab) {
  slab->state = SlabState::available;
  slab->age = 0;
  SpanList& list = available_like(heap, slab);
  bool none_behind = list.empty() || list.last()->age != kLookedAt;
  none_behind ? list.push_back(slab) : list.push_front(slab);
}

void make_available_last(Heap* heap, Span* slab) {
  slab->state = SlabState::available;
  slab->age = kLookedAt;
  available_like(heap, slab).push_back(slab);
}

void remove_available(Heap* heap, Span* slab) {
  available_like(heap, slab).remove(slab);
  unmake_sparse(heap, slab);
}

Span* pop_available(Heap* heap, SizeClass size_class) {
  Span* slab = heap->available[size_class].first();
  if (slab != nullptr) remove_available(heap, slab);
  return slab;
}

void set_aside(Heap* heap, Span* slab) {
  watch::stop_serving_passed(heap, slab);
  slab->state = SlabState::full;
  if (heap->shared) heap->full.push_back(slab);
  slab::arm(slab, slab::properties(slab).worth);
}

void make_current(Heap* heap, Span* slab) {
  slab->state = SlabState::current;
  slab::rejoin(slab);
  heap->current[slab::class_of(slab)] = slab;
}

static void empty_bin(Heap* heap, SizeClass size_class) {
  watch::take_back(heap, size_class);
  Block* first = heap->bins[size_class];
  if (first == nullptr) return;
  heap->bins[size_class] = nullptr;
  if (heap->current[size_class] == nullptr) return;  // given up
  slab::give_back_bin(heap->current[size_class], first);
}

void empty_bins(Heap* heap) {
  for (size_t index = 0; index < size_class::kCount; ++index) empty_bin(heap, static_cast<SizeClass>(index));
}

// All of the slab is free.
static void give_back(Heap* heap, Span* slab, ThreadToken token) {
  RH_CHECK(slab::is_balanced(slab));
  slab::finish(slab);
  spans::give(heap, slab, spans::Use::slab, token);
}

static void unlist(Heap* heap, Span* slab) {
  if (is_available(slab)) remove_available(heap, slab);
  if (slab->state == SlabState::full && heap->shared) heap->full.remove(slab);
}

// So many blocks share the cost of another look.
static constexpr unsigned kMany = 32;

// With so few blocks in use there will be pages without any, which can be returned.
static unsigned few_left(const Span* slab) {
  const size_class::Properties& own = slab::properties(slab);
  if (!slab::may_have_holes()) return 0;
  if (own.size >= platform::kPageSize) return slab::capacity(slab) / 2;
  return slab::capacity(slab) >= kMany ? 4 : 1;
}

// How many are in use when the owner looks again: what it has freed by then can go with its pages.
static unsigned next_mark(const Span* slab, unsigned in_use) {
  unsigned few = few_left(slab);
  if (in_use > few) return few;
  bool again = few != 0 && in_use > 1 && slab::capacity(slab) >= kMany;
  return again ? 1 : 0;
}

static void look_again(Heap* heap, Span* slab, unsigned in_use) {
  SizeClass size_class = slab::class_of(slab);
  if (has_few_blocks(heap, size_class)) {
    slab::arm(slab, 1);
  } else {
    slab::arm(slab, in_use);
    note_use(heap, size_class);
  }
}

// Whether nothing of a current slab is in use: then the class gives it up, if it is seldom used, and the bin. The
// program may have taken blocks from there since the slab was armed.
RH_NOINLINE static bool give_up_current(Heap* heap, Span* slab, Caller caller) {
  SizeClass size_class = slab::class_of(slab);
  if (!is_seldom_used(heap, size_class)) return false;
  // The owner looks through its bin only when the count says so, or there is little to look at.
  constexpr unsigned kLittle = 16;
  if (caller.is_owner && slab->countdown.load() != 0 && slab::outstanding(slab) > kLittle) return false;
  if (caller.is_owner) watch::take_back(heap, size_class);
  unsigned in_bin = caller.is_owner ? slab::count_taken(slab, heap->bins[size_class]) : 0;
  unsigned in_use = slab::outstanding(slab) - in_bin;
  if (in_use != 0) {
    if (!caller.is_owner || slab->countdown.load() != 0) return false;
    look_again(heap, slab, in_use);
    return false;
  }
  empty_bin(heap, size_class);
  take_current(heap, size_class);
  return true;
}

bool serve_next(Heap* heap, Span* slab) {
  const SizeClass size_class = slab::class_of(slab);
  Span* used_up = heap->current[size_class];
  if (slab->state != SlabState::full || is_seldom_used(heap, size_class)) return false;
  if (heap->bins[passed_bin(size_class)] != nullptr || slab::free_blocks(used_up) != 0) return false;
  set_aside(heap, used_up);
  if (heap->shared) heap->full.remove(slab);
  make_current(heap, slab);
  if (slab::is_binned(slab))
    heap->bins[size_class] = slab::take(slab).blocks;
  else
    slab::arm(slab, slab::kNever);
  return true;
}

bool review(Heap* heap, Span* slab, Caller caller) {
  if (slab->state == SlabState::current && !give_up_current(heap, slab, caller)) return false;
  unsigned outstanding = slab::outstanding(slab);
  if (outstanding == 0) {
    unlist(heap, slab);
    give_back(heap, slab, caller.token);
    return true;
  }
  RH_CHECK(slab::is_balanced(slab));
  const size_class::Properties& own = slab::properties(slab);
  if (slab->state == SlabState::full) {
    unsigned free_blocks = slab::capacity(slab) - outstanding;
    if (free_blocks < own.worth) {
      if (caller.is_owner) slab::arm(slab, own.worth - free_blocks);
      return false;
    }
    if (heap->shared) heap->full.remove(slab);
    make_available(heap, slab);
  } else if (slab->age == kLookedAt) {
    remove_available(heap, slab);
    make_available(heap, slab);
  }
  bool few = outstanding <= few_left(slab);
  if (few) make_sparse(heap, slab);
  if (!caller.is_owner) {
    slab::leave(slab);
    return few;
  }
  if (few) slab::share(slab);
  slab::arm(slab, outstanding - next_mark(slab, outstanding));
  return few;
}

// Whether the heap is so much larger than ever that another look is little beside it. What a small one would give up
// others seldom fit into.
static bool has_grown(Heap* heap) {
  constexpr Units kLeast = Units::holding(8 << 20);
  const Units taken = heap->store.taken();
  if (taken < kLeast || taken < heap->looked_at + Units{taken.count / 16}) return false;
  heap->looked_at = taken;
  return true;
}

// Whether nothing of a current slab is in use. Its bin is followed where that is short.
static bool is_unused(const Heap* heap, const Span* slab) {
  constexpr unsigned kMost = 128;
  const SizeClass size_class = slab::class_of(slab);
  const unsigned outstanding = slab::outstanding(slab);
  if (outstanding > kMost || heap->bins[passed_bin(size_class)] != nullptr) return false;
  return slab::count_taken(slab, heap->bins[size_class]) == outstanding;
}

void give_up_unused(Heap* heap, SizeClass wanted) {
  if (!has_grown(heap)) return;
  for (size_t index = 0; index < size_class::kCount; ++index) {
    const SizeClass size_class = static_cast<SizeClass>(index);
    Span* slab = heap->current[size_class];
    if (slab == nullptr || size_class == wanted || !is_unused(heap, slab)) continue;
    empty_bin(heap, size_class);
    take_current(heap, size_class);
    heap->uses[size_class] = heap->lent[size_class] = 0;
    give_back(heap, slab, heap->token.load());
  }
}

void release_empty(Heap* heap, ThreadToken token) {
  for (size_t index = 0; index < size_class::kCount; ++index) {
    Span* current = heap->current[index];
    if (current != nullptr && slab::outstanding(current) == 0) {
      take_current(heap, static_cast<SizeClass>(index));
      heap->uses[index] = 0;
      give_back(heap, current, token);
    }
    for (Span *slab = heap->available[index].first(), *next; slab != nullptr; slab = next) {
      next = slab->next;
      if (slab::outstanding(slab) != 0) continue;
      remove_available(heap, slab);
      give_back(heap, slab, token);
    }
  }
  spans::give_back_all(heap, token);
  if constexpr (kDebugChecks) books::check(heap);
}

}  // namespace rh
