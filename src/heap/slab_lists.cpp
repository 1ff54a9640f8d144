#include "heap/slab_lists.h"

#include "heap/books.h"
#include "heap/retained.h"
#include "heap/spans.h"

namespace rh {

Span* take_current(Heap* heap, SizeClass size_class) {
  Span* slab = heap->current[size_class];
  heap->current[size_class] = nullptr;
  if (slab != nullptr) retained::subtract(bytes_of(slab));
  return slab;
}

static void empty_bin(Heap* heap, SizeClass size_class) {
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
static void finish(Heap* heap, Span* slab) {
  RH_CHECK(slab::is_balanced(slab));
  // Of a thread that was not forked along the lists may be of different moments.
  if (heap->fork_state != ForkState::to_restore) slab::check_lists(slab);
  slab::finish(slab);
}

static void give_back(Heap* heap, Span* slab, ThreadToken token) {
  finish(heap, slab);
  spans::give(heap, slab, token);
}

static void unlist(Heap* heap, Span* slab) {
  if (slab->state == SlabState::available) heap->available[slab->size_class.load()].remove(slab);
  if (slab->state == SlabState::full && heap->shared) heap->full.remove(slab);
}

void make_available(Heap* heap, Span* slab) {
  slab->state = SlabState::available;
  slab->age = 0;
  heap->sparse = true;
  SpanList& list = heap->available[slab->size_class.load()];
  bool all_new = list.empty() || list.last()->age != kLookedAt;
  all_new ? list.push_back(slab) : list.push_front(slab);
}

// So few blocks of a slab are in use that there will be pages without any.
static constexpr unsigned kFewLeft = 4;

// Until then, or all is free, the owner need not look: the blocks it has freed by then can go with their pages.
static unsigned next_mark(const Span* slab, unsigned in_use) {
  unsigned capacity = slab::properties(slab).capacity;
  if (!platform::kReplacesByZeros || in_use == 1 || capacity < 2 * kFewLeft) return 0;
  return in_use > kFewLeft && capacity >= 8 * kFewLeft ? kFewLeft : 1;
}

static void note_few_left(Heap* heap, Span* slab) {
  constexpr size_t kCounted = size_t{256} << 10;
  heap->freed += bytes_of(slab);
  if (heap->freed < kCounted) return;
  retained::add_freed(heap->freed);
  heap->freed = 0;
}

static void look_again(Heap* heap, Span* slab, unsigned in_use) {
  SizeClass size_class = slab->size_class.load();
  if (has_few_blocks(heap, size_class)) {
    slab::check_lists(slab);
    slab::arm(slab, 1);
  } else {
    slab::arm(slab, in_use);
    note_use(heap, size_class);
  }
}

// Whether nothing of a current slab is in use: then the class gives it up, if it is seldom used, and the bin. The
// program may have taken blocks from there since the slab was armed.
RH_NOINLINE static bool give_up_current(Heap* heap, Span* slab, Caller caller) {
  SizeClass size_class = slab->size_class.load();
  if (!is_seldom_used(heap, size_class)) return false;
  // The owner looks through its bin only when the count says so, or there is little to look at.
  constexpr unsigned kLittle = 16;
  if (caller.is_owner && slab->countdown.load() != 0 && slab::outstanding(slab) > kLittle) return false;
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

void review(Heap* heap, Span* slab, Caller caller) {
  if (slab->state == SlabState::current && !give_up_current(heap, slab, caller)) return;
  unsigned outstanding = slab::outstanding(slab);
  if (outstanding == 0) {
    unlist(heap, slab);
    return give_back(heap, slab, caller.token);
  }
  RH_CHECK(slab::is_balanced(slab));
  const size_class::Properties& own = slab::properties(slab);
  if (slab->state == SlabState::full) {
    unsigned free_blocks = own.capacity - outstanding;
    if (free_blocks < own.worth) {
      if (caller.is_owner) slab::arm(slab, own.worth - free_blocks);
      return;
    }
    if (heap->shared) heap->full.remove(slab);
    make_available(heap, slab);
  } else if (slab->age == kLookedAt) {
    heap->available[slab->size_class.load()].remove(slab);
    make_available(heap, slab);
  }
  if (outstanding <= kFewLeft) note_few_left(heap, slab);
  if (!caller.is_owner) return slab::leave(slab);
  slab::share(slab);
  slab::arm(slab, outstanding - next_mark(slab, outstanding));
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
      heap->available[index].remove(slab);
      give_back(heap, slab, token);
    }
  }
  spans::give_back_all(heap, token);
  if constexpr (kDebugChecks) books::check(heap);
}

}  // namespace rh
