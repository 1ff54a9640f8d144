#include "heap/heap.h"

#include "heap/books.h"
#include "heap/fork.h"
#include "heap/idle.h"
#include "heap/large.h"
#include "heap/registry.h"
#include "heap/shared.h"
#include "platform/report.h"

namespace rh {

static_assert(platform::kUnsetIsNull || offsetof(Heap, bins) + sizeof(Heap::bins) <= 4096);

Heap* own_heap() {
  if (Heap* heap = own_heap_if_any(); RH_LIKELY(heap != nullptr)) return heap;
  Heap* heap = registry::adopt_or_make();
  if (heap != nullptr) platform::set_thread_word(heap);
  return heap;
}

// ---- allocation ---------------------------------------------------------------------------------

RH_INLINE static Block* refill_own(Heap* heap, SizeClass size_class) {
  LockGuard guard(heap->lock, heap->token.load());
  return torn() ? nullptr : refill(heap, size_class);
}

RH_COLD static Block* reclaim_and_refill(Heap* heap, SizeClass size_class) {
  return idle::reclaim() ? refill_own(heap, size_class) : nullptr;
}

static Block* take_small(SizeClass size_class) {
  Heap* heap = own_heap();
  if (RH_UNLIKELY(heap == nullptr)) return nullptr;
  // A heap left behind by another thread brings its bins.
  if (Block* block = pop(heap, size_class)) return block;
  Block* block = refill_own(heap, size_class);
  if (RH_UNLIKELY(block == nullptr)) block = reclaim_and_refill(heap, size_class);
  if (RH_UNLIKELY(idle::much_is_held())) idle::note_free();
  return block;
}

static void* allocate_small(SizeClass size_class, size_t size) {
  Block* block = take_small(size_class);
  if (block == nullptr && torn()) return large::allocate(size, kUnitSize, Prefer::warm);
  return noted(block, size_class, size);
}

void* allocate_slow(size_t size) {
  if (size > kMaxSmall) return large::allocate(size, kUnitSize, Prefer::warm);
  return allocate_small(size_class::of(size), size);
}

void* allocate_zeroed(size_t size) {
  if (size > kMaxSmall) return large::allocate_zeroed(size);
  SizeClass size_class = size_class::of(size);
  void* block = allocate_small(size_class, size);
  if (block == nullptr) return nullptr;
  // Only the link was written in memory fresh from the OS.
  size_t written = !torn() && own_heap()->bin_zero[size_class] ? sizeof(Block) : size;
  return __builtin_memset(block, 0, written);
}

void* allocate_aligned(size_t alignment, size_t size) {
  if (alignment <= kBlockAlign) return allocate(size);
  if (alignment <= kUnitSize && size <= kMaxSmall) {
    size_t size_class = size_class::aligned(size, alignment);
    if (size_class < size_class::kCount) {
      return allocate_small(static_cast<SizeClass>(size_class), size);
    }
  }
  return large::allocate(size, alignment, Prefer::warm);
}

// The stash changes with each slab. So it counts as what it can be at most, from its first span until all of it goes back.
static void note_stash(Heap* heap) {
  if (RH_LIKELY(heap->stash_is_held)) return;
  heap->stash_is_held = true;
  idle::note_held(Heap::kStashMost * kUnitSize);
}

static void fill_stash(Heap* heap) {
  heap->stashed = g_arena.allocate_single(&heap->stash, Heap::kStashMost / 2);
  note_stash(heap);
}

void give_back_stash(Heap* heap, ThreadToken token) {
  while (Span* span = heap->stash.pop_front()) g_arena.free(span, token);
  heap->stashed = 0;
  if (heap->stash_is_held) idle::note_let_go(Heap::kStashMost * kUnitSize);
  heap->stash_is_held = false;
}

// The slab to go on with when there is none available.
RH_NOINLINE static Span* fresh_slab(Heap* heap, SizeClass size_class) {
  heap->slabs_taken.add(1);
  if (!heap->shared) {
    registry::adopt_slabs(heap);
    if (Span* slab = heap->available[size_class].pop_front()) return slab;
  }
  Units units{size_class::kProperties[size_class].units};
  Span* span = nullptr;
  if (units == Units{1}) {
    if (heap->stashed == 0) fill_stash(heap);
    span = heap->stash.pop_front();
    if (span != nullptr) --heap->stashed;
  } else {
    span = g_arena.allocate(units);
  }
  if (span != nullptr) slab::start(span, size_class, heap);
  return span;
}

// Most threads use most classes not at all, or a few times. So a class begins with one block, then takes two, then four,
// and at last a page of them.
constexpr unsigned kFewBlocks = 4;

// Until it was refilled so often its slab goes back when all of it is free again, to serve the next class.
constexpr unsigned kSeldom = 12;

static void note_use(Heap* heap, SizeClass size_class) {
  if (heap->uses[size_class] < kSeldom) ++heap->uses[size_class];
}

static bool is_seldom_used(const Heap* heap, SizeClass size_class) {
  return heap->uses[size_class] < kSeldom;
}

// While the blocks made at a time are few, each that is freed is looked at.
static bool has_few_blocks(const Heap* heap, SizeClass size_class) {
  return heap->uses[size_class] <= kFewBlocks;
}

static size_t bytes_of(const Span* slab) { return Units{slab->units}.bytes(); }

Span* take_current(Heap* heap, SizeClass size_class) {
  Span* slab = heap->current[size_class];
  heap->current[size_class] = nullptr;
  if (slab != nullptr) idle::note_let_go(bytes_of(slab));
  return slab;
}

static void set_aside(Heap* heap, Span* slab) {
  slab->state = SlabState::full;
  if (heap->shared) heap->full.push_back(slab);
  unsigned worth = slab::properties(slab).worth;
  slab::arm(slab, worth);
}

RH_NOINLINE static slab::Taken take_little(Heap* heap, Span* slab) {
  SizeClass size_class = slab->size_class.load();
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

// Puts the next slab in the place of the current one, which has no more blocks. False, and there is none, when memory is
// short.
static bool change_current(Heap* heap, SizeClass size_class) {
  Span* used_up = heap->current[size_class];
  if (used_up != nullptr) set_aside(heap, used_up);
  Span* slab = heap->available[size_class].pop_front();
  if (slab == nullptr) slab = fresh_slab(heap, size_class);
  if (slab == nullptr) {
    take_current(heap, size_class);
    return false;
  }
  slab->state = SlabState::current;
  slab::rejoin(slab);
  heap->current[size_class] = slab;
  if (used_up == nullptr) idle::note_held(bytes_of(slab));
  return true;
}

RH_INLINE static slab::Taken take_from_current(Heap* heap, SizeClass size_class) {
  Span* slab = heap->current[size_class];
  if (RH_UNLIKELY(slab == nullptr)) return {nullptr, false};
  if (RH_UNLIKELY(is_seldom_used(heap, size_class))) return take_little(heap, slab);
  return slab::take(slab);
}

RH_NOINLINE static slab::Taken take_from_next(Heap* heap, SizeClass size_class) {
  slab::Taken taken{};
  while (taken.blocks == nullptr && change_current(heap, size_class))
    taken = take_from_current(heap, size_class);
  return taken;
}

Block* refill(Heap* heap, SizeClass size_class) {
  heap->refills.add(1);
  if (heap->inbox.load(std::memory_order_relaxed) != nullptr)
    drain(heap, {heap->token.load(), true});
  slab::Taken taken = take_from_current(heap, size_class);
  if (RH_UNLIKELY(taken.blocks == nullptr)) taken = take_from_next(heap, size_class);
  if (RH_UNLIKELY(taken.blocks == nullptr)) return nullptr;
  heap->bin_zero[size_class] = taken.zero;
  heap->bins[size_class] = taken.blocks->next;
  if constexpr (kDebugChecks) books::check_class(heap, size_class);
  return taken.blocks;
}

static void empty_bin(Heap* heap, SizeClass size_class) {
  Block* first = heap->bins[size_class];
  if (first == nullptr) return;
  heap->bins[size_class] = nullptr;
  if (heap->current[size_class] == nullptr) return;  // given up
  slab::give_back_bin(heap->current[size_class], first);
}

// ---- freeing ------------------------------------------------------------------------------------

// The caller holds heap.lock, and all of the slab is free.
static void finish(Heap* heap, Span* slab) {
  RH_CHECK(slab::is_balanced(slab));
  // Of a thread that was not forked along the lists may be of different moments.
  if (heap->fork_state != ForkState::to_restore) slab::check_lists(slab);
  slab::finish(slab);
}

void release_slab(Heap* heap, Span* slab, ThreadToken token) {
  finish(heap, slab);
  slab->zero = false;
  if (slab->units == 1 && heap->stashed < Heap::kStashMost) {
    heap->stash.push_front(slab);
    ++heap->stashed;
    note_stash(heap);
    return;
  }
  g_arena.free(slab, token);
}

static void unlist(Heap* heap, Span* slab) {
  if (slab->state == SlabState::available) heap->available[slab->size_class.load()].remove(slab);
  if (slab->state == SlabState::full && heap->shared) heap->full.remove(slab);
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

// Whether nothing of a current slab is in use: then the class gives it up, if it is seldom used, and the bin. The program
// may have taken blocks from there since the slab was armed.
RH_NOINLINE static bool give_up_current(Heap* heap, Span* slab, Caller caller) {
  SizeClass size_class = slab->size_class.load();
  if (!is_seldom_used(heap, size_class)) return false;
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
    release_slab(heap, slab, caller.token);
    return;
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
    slab->state = SlabState::available;
    heap->available[slab->size_class.load()].push_back(slab);
  }
  if (caller.is_owner) {
    slab::arm(slab, outstanding);
  } else {
    slab::leave(slab);
  }
}

void free_reached_mark(Span* slab) {
  Heap* heap = own_heap_if_any();
  {
    LockGuard guard(heap->lock, heap->token.load());
    if (torn()) return;
    heap->marks.add(1);
    // A helper may have seen the slab empty, and released it, before this thread got the lock.
    if (owner_of(slab) == heap) review(heap, slab, {heap->token.load(), true});
  }
  idle::note_free();
}

void fail_invalid(const char* function, const void* pointer) {
  Text message;
  message << function << " of invalid pointer ";
  message.hex(address_of(pointer)) << ": not the start of a live block";
  fatal(message);
}

// Arms again what a helper has left, by the owner, who still holds a block of it.
static void take_up(Heap* heap, Span* slab) {
  LockGuard guard(heap->lock, heap->token.load());
  if (!torn()) review(heap, slab, {heap->token.load(), true});
}

static void free_in_slab(Span* slab, Block* block) {
  size_t offset = address_of(block) - g_realm.address(slab);
  if (!slab::is_block(slab, offset)) fail_invalid("free", block);
  Heap* owner = owner_of(slab);
  Heap* heap = own_heap();
  if (owner == heap) {
    if (slab::is_left(slab)) take_up(heap, slab);
    if (slab::free_local(slab, block)) free_reached_mark(slab);
  } else if (owner->shared) {
    shared::free(owner, slab, block);
  } else if (owner != &fork::g_given_up) {
    free_remote(heap, slab, block);
  }
}

Freed deallocate_slow(void* pointer) {
  if (pointer == nullptr) return Freed::done;
  if (!in_realm(pointer)) return Freed::foreign;
  Span* span = g_realm.find(pointer);
  if (span == nullptr) fail_invalid("free", pointer);
  switch (span->kind.load()) {
  case SpanKind::slab:
  case SpanKind::interior:
    free_in_slab(slab::head(span), static_cast<Block*>(pointer));
    return Freed::done;
  case SpanKind::large:
    if (address_of(pointer) != g_realm.address(span)) break;
    large::free(span);
    return Freed::done;
  default:
    break;
  }
  fail_invalid("free", pointer);
}

bool deallocate_live(void* pointer) {
  if (!is_live(pointer)) return false;
  Span* span = g_realm.span_of(pointer);
  if (span->kind.load() != SpanKind::large) slab::note_free(slab::head(span), pointer);
  deallocate_slow(pointer);
  return true;
}

void empty_bins(Heap* heap) {
  for (size_t index = 0; index < size_class::kCount; ++index)
    empty_bin(heap, static_cast<SizeClass>(index));
}

void release_empty(Heap* heap, ThreadToken token) {
  for (size_t index = 0; index < size_class::kCount; ++index) {
    Span* current = heap->current[index];
    if (current != nullptr && slab::outstanding(current) == 0) {
      take_current(heap, static_cast<SizeClass>(index));
      heap->uses[index] = 0;
      finish(heap, current);
      g_arena.free(current, token);
    }
    for (Span *slab = heap->available[index].first(), *next; slab != nullptr; slab = next) {
      next = slab->next;
      if (slab::outstanding(slab) != 0) continue;
      heap->available[index].remove(slab);
      finish(heap, slab);
      g_arena.free(slab, token);
    }
  }
  give_back_stash(heap, token);
  if constexpr (kDebugChecks) books::check(heap);
}

// ---- sizes --------------------------------------------------------------------------------------

// The table also has room for addresses that are somebody else's, and not yet for all that were reserved.
bool in_realm(const void* pointer) {
  Span* span = g_realm.find(pointer);
  return (span != nullptr && span->kind.load() != SpanKind::none) || g_realm.covers(pointer);
}

bool is_live(const void* pointer) {
  Span* span = g_realm.find(pointer);
  if (span == nullptr) return false;
  switch (span->kind.load()) {
  case SpanKind::slab:
  case SpanKind::interior:
    span = slab::head(span);
    return slab::is_live(span, pointer, address_of(pointer) - g_realm.address(span));
  case SpanKind::large:
    return address_of(pointer) == g_realm.address(span);
  default:
    return false;
  }
}

size_t usable_size(const void* pointer, const char* function) {
  Span* span = g_realm.find(pointer);
  if (span == nullptr) fail_invalid(function, pointer);
  switch (span->kind.load()) {
  case SpanKind::slab:
  case SpanKind::interior:
    return slab::properties(slab::head(span)).size;
  case SpanKind::large:
    if (address_of(pointer) == g_realm.address(span)) return Units{span->units}.bytes();
    break;
  default:
    break;
  }
  fail_invalid(function, pointer);
}

// The head of the slab or large block that an address lies in, or null.
static Span* head_of(const void* pointer) {
  Span* span = g_realm.find(pointer);
  if (span == nullptr) return nullptr;
  SpanKind kind = span->kind.load();
  if (kind == SpanKind::slab || kind == SpanKind::interior) return slab::head(span);
  return large::head_of(span);
}

bool owns(const void* pointer) { return head_of(pointer) != nullptr; }

void* block_start(const void* pointer, const char* function) {
  Span* head = head_of(pointer);
  if (head == nullptr) fail_invalid(function, pointer);
  uintptr_t start = g_realm.address(head);
  if (head->kind.load() == SpanKind::large) return reinterpret_cast<void*>(start);
  size_t size = slab::properties(head).size;
  return reinterpret_cast<void*>(start + (address_of(pointer) - start) / size * size);
}

size_t requested_size(const void* pointer, const char* function) {
  size_t usable = usable_size(pointer, function);
  if constexpr (!kExactSizes) return usable;
  Span* span = g_realm.span_of(pointer);
  if (span->kind.load() == SpanKind::large) return span->requested;
  return slab::requested_size(slab::head(span), pointer);
}

size_t good_size(size_t size) {
  if (size > kMaxRequest) return 0;
  if (size > kMaxSmall) return Units::holding(size).bytes();
  return size_class::kProperties[size_class::of(size)].size;
}

void* resize_in_place(void* pointer, size_t size, Fit fit) {
  Span* span = g_realm.span_of(pointer);
  if (span->kind.load() == SpanKind::large) {
    return large::resize_in_place(span, size, fit) ? pointer : nullptr;
  }
  SizeClass size_class = slab::head(span)->size_class.load();
  size_t usable = size_class::kProperties[size_class].size;
  // A block that would be less than half used moves to its own class.
  if (size > usable || (fit == Fit::close && size < usable / 2)) return nullptr;
  return noted(static_cast<Block*>(pointer), size_class, size);
}

void* resize_by_moving(void* pointer, size_t size) {
  Span* span = g_realm.span_of(pointer);
  if (span->kind.load() != SpanKind::large) return nullptr;
  return large::resize_by_moving(span, size);
}

}  // namespace rh
