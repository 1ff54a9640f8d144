#include "heap/heap.h"

#include "base/chance.h"
#include "heap/abandoned.h"
#include "heap/accounts.h"
#include "heap/fork.h"
#include "heap/idle.h"
#include "heap/lending.h"
#include "heap/limit.h"
#include "heap/mend.h"
#include "heap/refill.h"
#include "heap/registry.h"
#include "heap/relief.h"
#include "heap/remote.h"
#include "heap/retained.h"
#include "heap/sampled.h"
#include "heap/shared.h"
#include "heap/slab_lists.h"
#include "heap/sparse.h"
#include "heap/watch.h"

namespace rh {

constinit platform::Unset platform::g_unset;

RH_COLD static Heap* find_own_heap() {
  fork::watch();
  mend::watch();
  Heap* heap = registry::adopt_or_make();
  if (heap != nullptr) platform::set_thread_word(heap);
  return heap;
}

Heap* own_heap() {
  Heap* heap = own_heap_if_any();
  return RH_LIKELY(heap != nullptr) ? heap : find_own_heap();
}

// ---- allocation ---------------------------------------------------------------------------------

template <typename Attempt> RH_COLD static auto reclaim_and_retry(size_t size, Attempt attempt) {
  bool worth_it = limit::has_risen();
  worth_it |= idle::reclaim();
  size_t refusals = g_arena.refusals();
  auto memory = worth_it || limit::is_hard() ? attempt() : decltype(attempt()){};
  if (!memory && g_arena.refusals() != refusals) limit::note_refused(size);
  return memory;
}

// When there is no memory, what all heaps hold back is collected, and one more attempt made.
template <typename Attempt> RH_INLINE static auto insist(size_t size, Attempt attempt) {
  auto memory = attempt();
  return RH_LIKELY(memory) ? memory : reclaim_and_retry(size, attempt);
}

// Where a limit of the heap's, or its tag's, is in the way, what they hold back goes back; if that is not enough the
// request is refused.
RH_COLD static bool make_room(Heap* heap, Units units) {
  idle::collect_beside(heap);
  if (accounts::admits(heap, units)) return true;
  accounts::note_refused(heap);
  return false;
}

RH_COLD static slab::Taken take_limited(Heap* heap, SizeClass size_class, size_t size) {
  auto attempt = [=] { return shared::take(heap, size_class); };
  if (slab::Taken taken = attempt()) return taken;
  idle::collect_beside(heap);
  if (slab::Taken taken = attempt()) return taken;
  if (accounts::admits(heap, size_class::shortest_slab(size_class))) return insist(size, attempt);
  accounts::note_refused(heap);
  return {};
}

// From a first-class heap, or a tag's.
static slab::Taken take_shared(Heap* heap, SizeClass size_class, size_t size) {
  if (RH_UNLIKELY(accounts::are_limited(heap))) return take_limited(heap, size_class, size);
  return insist(size, [=] { return shared::take(heap, size_class); });
}

static Span* allocate_span(size_t alignment, size_t size, Prefer prefer, Partition partition) {
  if (!large::is_possible(size)) return nullptr;
  return insist(size, [=] { return large::allocate(size, alignment, prefer, partition); });
}

// From the heap's store.
static Span* take_span(Heap* home, size_t size) {
  return insist(size, [=]() -> Span* {
    ThreadToken token = platform::thread_token();
    LockGuard guard(home->lock, token);
    return inconsistent() ? nullptr : large::allocate_from(home, size, token);
  });
}

static void* start_of(const Span* span) { return reinterpret_cast<void*>(g_realm.address(span)); }

// From the arena.
static Span* allocate_long(Heap* heap, size_t alignment, size_t size, bool zeroed) {
  const Prefer prefer = zeroed ? large::preferred_for_zero(size) : Prefer::warm;
  const Partition partition = heap != nullptr ? heap->partition : kUntyped;
  Span* span = allocate_span(alignment, size, prefer, partition);
  if (span == nullptr || heap == nullptr || shared::list_large(heap, span)) return span;
  large::free(span);
  return nullptr;
}

RH_NOINLINE static void* allocate_large(Heap* heap, size_t alignment, size_t size, bool zeroed) {
  const Units units = Units::holding(size);
  if (heap != nullptr && !accounts::admits(heap, units) && !make_room(heap, units)) return nullptr;
  Heap* home = heap != nullptr ? heap : own_heap();
  bool from_store = home != nullptr && large::is_from_store(size, alignment);
  Span* span = from_store ? take_span(home, size) : nullptr;
  bool fresh = !from_store || inconsistent();
  if (span == nullptr && fresh) span = allocate_long(heap, alignment, size, zeroed);
  if (relief::is_called()) relief::answer();
  if (span == nullptr) return nullptr;
  if (zeroed) large::clear(span, size);
  return start_of(span);
}

// Sets `*size_class` to that of the block it gives.
static slab::Taken take_own(SizeClass* size_class) {
  Heap* heap = own_heap();
  if (RH_UNLIKELY(heap == nullptr)) return {};
  // A heap left behind by another thread brings its bins.
  if (Block* block = pop(heap, *size_class)) return {block, false};
  LockGuard guard(heap->lock, heap->token.load());
  if (inconsistent()) return {};
  SizeClass from = lending::choose(heap, *size_class);
  if (RH_UNLIKELY(from != *size_class)) {
    *size_class = from;
    if (Block* block = pop(heap, from)) return {block, false};
  }
  return refill(heap, from);
}

// The way nearly every refill takes: the thread has a heap, nobody else its lock, and the class a slab. No block, and
// nothing done, when there is more to it.
RH_INLINE static slab::Taken take_quickly(SizeClass size_class) {
  Heap* heap = heap_in_use_if_any();
  if (RH_UNLIKELY(heap == nullptr || idle::is_needed() || relief::is_called() || sparse::is_wanted(heap))) return {};
  if (Block* block = pop(heap, size_class)) return {block, false};
  if (RH_UNLIKELY(!heap->lock.try_acquire(heap->token.load()))) return {};
  bool simple = heap->current[size_class] != nullptr && !inconsistent();
  const slab::Taken taken = RH_LIKELY(simple) ? refill(heap, size_class) : slab::Taken{};
  heap->lock.release();
  return taken;
}

// Sets `*size_class` likewise.
RH_INLINE static slab::Taken take_small(Heap* heap, SizeClass* size_class, size_t size) {
  slab::Taken taken = heap != nullptr ? take_shared(heap, *size_class, size)
                                      : insist(size, [size_class] { return take_own(size_class); });
  // Those who use first-class heaps look when they free.
  if ((heap == nullptr || !is_first_class(heap)) && RH_UNLIKELY(idle::is_needed())) idle::note_free();
  if (relief::is_called()) relief::answer();
  Heap* from = heap != nullptr ? heap : own_heap_if_any();
  if (from != nullptr && RH_UNLIKELY(sparse::is_wanted(from))) sparse::give_some(from);
  return taken;
}

// For the program, if there is one.
RH_INLINE static void* give(Heap* heap, slab::Taken taken, SizeClass size_class, size_t size, bool zeroed) {
  if (RH_UNLIKELY(!taken)) return inconsistent() ? allocate_large(heap, kUnitSize, size, zeroed) : nullptr;
  // Only the link and the mark were written in memory fresh from the OS.
  if (zeroed) __builtin_memset(static_cast<void*>(taken.blocks), 0, taken.zero ? sizeof(Block) : size);
  return noted(taken.blocks, size_class, size);
}

RH_NOINLINE static void* allocate_small(Heap* heap, SizeClass size_class, size_t size, bool zeroed) {
  const slab::Taken taken = take_small(heap, &size_class, size);
  return give(heap, taken, size_class, size, zeroed);
}

RH_NOINLINE static void* allocate_unwatched(size_t size) {
  if (size > kMaxSmall) return allocate_large(tagged_heap(), kUnitSize, size, false);
  SizeClass size_class = size_class::of(size);
  if (const slab::Taken taken = take_quickly(size_class)) return noted(taken.blocks, size_class, size);
  return allocate_small(tagged_heap(), size_class, size, false);
}

// kCount of what has none.
RH_INLINE static size_t class_for(size_t alignment, size_t size) {
  bool small = alignment <= kUnitSize && size <= kMaxSmall;
  return small ? size_class::aligned(size, alignment) : size_class::kCount;
}

RH_INLINE static void* allocate_any(Heap* heap, size_t alignment, size_t size, bool zeroed) {
  const size_t size_class = class_for(alignment, size);
  if (size_class == size_class::kCount) return allocate_large(heap, alignment, size, zeroed);
  return allocate_small(heap, static_cast<SizeClass>(size_class), size, zeroed);
}

// While allocations are watched (heap/watch.h). Null: there is no place or memory for it, as for the next.
static void* allocate_guarded(Watched& watched, Heap* heap, size_t alignment, size_t size) {
  const bool at_end = (chance::next_random(watched.random) & 1) != 0;
  return guards::allocate(alignment, size, at_end, heap);
}

RH_COLD static void* allocate_chosen(Watched& watched, watch::Choice choice, size_t alignment, size_t size,
                                     bool zeroed) {
  void* block = choice.guarded ? allocate_guarded(watched, nullptr, alignment, size) : nullptr;
  Heap* from = block == nullptr && choice.sampled ? sampled::heap() : nullptr;
  if (from != nullptr) block = allocate_any(from, alignment, size, zeroed);
  if (choice.sampled && block != nullptr) profile::note_allocation(block, size, watched.sampled_every);
  return block;
}

RH_NOINLINE static void* allocate_and_pass(Heap* heap, SizeClass size_class, size_t size, bool zeroed) {
  SizeClass from = size_class;
  slab::Taken taken = take_quickly(size_class);
  if (!taken) taken = take_small(tagged_heap(), &from, size);
  if (taken) watch::pass(heap, size_class, taken);
  return give(tagged_heap(), taken, from, size, zeroed);
}

// A large one, or a small one whose class has none left that were passed.
RH_NOINLINE static void* allocate_looked_at(Heap* heap, size_t size_class, size_t alignment, size_t size, bool zeroed) {
  const bool small = size_class != size_class::kCount;
  if (small) watch::settle(heap, static_cast<SizeClass>(size_class));
  const size_t asked = size == 0 ? 1 : size, taken = small ? size_class::kProperties[size_class].size : asked;
  const watch::Choice choice = watch::look_at(heap, size_class, asked, taken);
  void* block = nullptr;
  if (choice.guarded || choice.sampled) block = allocate_chosen(heap->watched, choice, alignment, size, zeroed);
  if (block != nullptr) return block;
  if (!small) return allocate_large(tagged_heap(), alignment, size, zeroed);
  return allocate_and_pass(heap, static_cast<SizeClass>(size_class), size, zeroed);
}

static constinit std::atomic<Allocate*> g_other{nullptr};

void leave_to(Allocate* other) {
  if (other == nullptr) return;
  g_other.store(other, std::memory_order_relaxed);
  watch::look_at_passed();
  watch::begin(watch::Watcher::other);
}

bool is_left_to_other() { return g_other.load(std::memory_order_relaxed) != nullptr; }

MadeElsewhere allocate_elsewhere(size_t alignment, size_t size, bool zeroed) {
  Allocate* other = g_other.load(std::memory_order_relaxed);
  if (other == nullptr) return {false, nullptr};
  void* block = other(alignment, size);
  if (zeroed && block != nullptr) __builtin_memset(block, 0, size);
  return {true, block};
}

// Of each tag those to come are known ahead, by the heap that the thread has for it.
static void* allocate_watched(size_t alignment, size_t size, bool zeroed) {
  if (const MadeElsewhere made = allocate_elsewhere(alignment, size, zeroed); made.is_left) return made.block;
  if (RH_UNLIKELY(own_heap() == nullptr)) return allocate_any(nullptr, alignment, size, zeroed);
  Heap* heap = heap_in_use_if_any();
  const size_t size_class = class_for(alignment, size);
  Block* passed =
      size_class != size_class::kCount ? pop(heap, passed_bin(static_cast<SizeClass>(size_class))) : nullptr;
  if (passed == nullptr) return allocate_looked_at(heap, size_class, alignment, size, zeroed);
  if (zeroed) __builtin_memset(static_cast<void*>(passed), 0, size);
  return noted(passed, static_cast<SizeClass>(size_class), size);
}

void* allocate_slow(size_t size) {
  return RH_UNLIKELY(watch::is_on()) ? allocate_watched(kBlockAlign, size, false) : allocate_unwatched(size);
}

void* allocate_zeroed(size_t size) {
  if (RH_UNLIKELY(watch::is_on())) return allocate_watched(kBlockAlign, size, true);
  return allocate_any(tagged_heap(), kBlockAlign, size, true);
}

RH_COLD bool take_up(Heap* bound) {
  Heap* own = own_heap();
  if (own != nullptr) shared::take_up(bound, own);
  return own != nullptr;
}

void* allocate_aligned(size_t alignment, size_t size) {
  if (alignment <= kBlockAlign) return allocate(size);
  if (RH_UNLIKELY(watch::is_on())) return allocate_watched(alignment, size, false);
  return allocate_any(tagged_heap(), alignment, size, false);
}

// Of what a thread takes from heaps of the program's one in so many is chosen, whichever heap it is from.
RH_COLD static void* allocate_watched_in(Heap* heap, size_t alignment, size_t size, bool zeroed) {
  if (heap == nullptr) return allocate_watched(alignment, size, zeroed);
  Heap* own = own_heap();
  if (own == nullptr) return allocate_any(heap, alignment, size, zeroed);
  const size_t asked = size == 0 ? 1 : size;
  const watch::Choice choice = watch::look_at(own, Watched::kOfHeaps, asked, asked);
  void* block = choice.guarded ? allocate_guarded(own->watched, heap, alignment, size) : nullptr;
  if (block == nullptr) block = allocate_any(heap, alignment, size, zeroed);
  if (choice.sampled && block != nullptr) sampled::note_in_heap(heap, block, size, own->watched.sampled_every);
  return block;
}

void* allocate_in(Heap* heap, size_t alignment, size_t size, bool zeroed) {
  if (heap != nullptr && !may_take_from(heap)) return nullptr;
  if (!kHardened && RH_UNLIKELY(watch::is_on())) return allocate_watched_in(heap, alignment, size, zeroed);
  return allocate_any(heap != nullptr ? heap : tagged_heap(), alignment, size, zeroed);
}

size_t allocate_many_in(Heap* heap, size_t size, void** blocks, size_t count) {
  if (size > kMaxSmall || watch::is_on()) return 0;
  const SizeClass size_class = size_class::of(size);
  const size_t taken = shared::take_many(heap, size_class, blocks, count);
  for (size_t at = 0; at < taken; ++at) noted(static_cast<Block*>(blocks[at]), size_class, size);
  if (relief::is_called()) relief::answer();
  return taken;
}

// ---- freeing ------------------------------------------------------------------------------------
//
// Each function that frees says whether memory may have become free that is to be returned: idle hears of it when no
// lock is held any longer.

// By the owner of `heap`: the slab's countdown is over.
static bool review_own(Heap* heap, Span* slab) {
  LockGuard guard(heap->lock, heap->token.load());
  if (inconsistent()) return false;
  heap->marks.add(1);
  // A helper may have seen the slab empty, and released it, before this thread got the lock.
  if (owner_of(slab) != heap) return true;
  watch::note_mark(slab);
  const bool served = !has_at_hand(heap, slab::class_of(slab)) && serve_next(heap, slab);
  const bool freed = !served && review(heap, slab, {heap->token.load(), true});
  constexpr size_t kNowAndThen = 16;  // what was freed before may be due
  return freed || heap->marks.value() % kNowAndThen == 0;
}

void free_reached_mark(Span* slab) {
  if (review_own(heap_in_use_if_any(), slab)) idle::note_free();
}

// Arms again what a helper has left, by the owner, who still holds a block of it.
static void arm_again(Heap* heap, Span* slab) {
  LockGuard guard(heap->lock, heap->token.load());
  if (!inconsistent()) review(heap, slab, {heap->token.load(), true});
}

// There is more to it than usual.
RH_COLD static void note_own_free(Heap* heap, Span* slab, const Block* block) {
  if (slab::is_left(slab)) arm_again(heap, slab);
  sampled::note_free(block);
}

static bool free_small(Span* slab, Block* block) {
  Heap* owner = owner_of(slab);
  Heap* heap = own_heap();
  if (owner == heap || is_bound_to_me(owner)) {
    if (RH_UNLIKELY(has_note(slab->owner.load(), kLeft | kKnown))) note_own_free(owner, slab, block);
    return free_own(owner, slab, block) && review_own(owner, slab);
  }
  return free_from_outside(heap, slab, block);
}

bool free_from_outside(Heap* heap, Span* slab, Block* block) {
  Heap* owner = owner_of(slab);
  if (owner->shared && !is_bound(owner)) {
    sampled::note_free(block);
    shared::free(owner, slab, block);
    return true;
  }
  if (is_first_class(owner)) {
    sampled::note_free(block);
    return free_alone(heap, slab, block);
  }
  return owner != &abandoned::g_leaked && free_remote(heap, slab, block);
}

static bool free_large(Span* span) {
  if (large::has_owner(span)) {
    sampled::note_free(start_of(span));
    shared::free_large(span);
  } else {
    large::free(span);
  }
  return true;
}

RH_INLINE static void free_block(const BlockAt& at, void* pointer) {
  Block* block = static_cast<Block*>(pointer);
  if (RH_UNLIKELY(at.is_guarded())) {
    sampled::note_free(pointer);
    return guards::free(at.span, pointer);
  }
  if (at.is_large() ? free_large(at.span) : free_small(at.span, block)) idle::note_free();
}

void bound_reached_mark(Heap* heap, Span* slab) {
  if (review_own(heap, slab)) idle::note_free();
}

Freed deallocate_slow(void* pointer) {
  BlockAt at = find_block(pointer);
  if (RH_UNLIKELY(!at.is_start())) {
    if (pointer == nullptr) return Freed::done;
    if (!in_realm(pointer)) return Freed::foreign;
    fail_invalid("free", pointer);
  }
  free_block(at, pointer);
  return Freed::done;
}

bool deallocate_live(void* pointer) {
  BlockAt at = find_block(pointer);
  if (!at.is_live()) return false;
  if (at.is_small()) slab::note_free(at.span, pointer);
  free_block(at, pointer);
  return true;
}

// What is known of its blocks beside it ends with them.
static void end_blocks(Heap* heap) {
  sampled::note_end(heap);
  guards::free_all(heap);
}

void destroy_heap(Heap* heap) {
  end_blocks(heap);
  shared::destroy(heap);
  idle::note_free();
}

void reset_heap(Heap* heap) {
  end_blocks(heap);
  shared::reset(heap);
  idle::note_free();
}

Heap* create_bound_heap() {
  Heap* own = own_heap();
  return own != nullptr ? shared::create_bound(own) : nullptr;
}

// ---- sizes --------------------------------------------------------------------------------------

void* block_start(const void* pointer, const char* function) {
  BlockAt at = find_block(pointer);
  if (at.span == nullptr) fail_invalid(function, pointer);
  return at.start();
}

size_t good_size(size_t size) {
  if (size > kMaxRequest) return size;                                 // which is refused
  if (guards::every() != 0 && size <= guards::kMostSize) return size;  // some have no byte more
  if (size > kMaxSmall) return Units::holding(size).bytes();
  return size_class::kProperties[size_class::of(size)].size;
}

void* resize_in_place(const BlockAt& at, size_t size, Fit fit) {
  void* block = const_cast<void*>(at.pointer);
  if (at.is_guarded()) return nullptr;
  if (at.is_large()) {
    if (RH_UNLIKELY(watch::is_on()) && sampled::must_move(at, size)) return nullptr;
    const size_t before = at.usable_size();
    large::Resized resized = large::resize_in_place(at.span, size, fit);
    if (resized == large::Resized::memory_freed) idle::note_free();
    if (resized != large::Resized::no) sampled::note_resize(at.span, before, size);
    if (relief::is_called()) relief::answer();
    return resized == large::Resized::no ? nullptr : block;
  }
  if (!fits_in_place(size, at.usable_size(), fit)) return nullptr;
  return noted(static_cast<Block*>(block), slab::class_of(at.span), size);
}

void* resize_by_copying(const BlockAt& at, size_t size) {
  if (!at.is_large() || !large::is_better_copied(at.span, size) || is_left_to_other()) return nullptr;
  void* copy = allocate(size);
  if (copy == nullptr) return nullptr;
  __builtin_memcpy(copy, at.pointer, size);
  deallocate(const_cast<void*>(at.pointer));
  return copy;
}

void* resize_by_moving(const BlockAt& at, size_t size) {
  if (!at.is_large() || !large::may_move(at.span, size) || !large::is_possible(size)) return nullptr;
  const bool is_sampled = sampled::is_sampled(at.span);
  if (large::has_owner(at.span) && !is_sampled) return nullptr;
  if (RH_UNLIKELY(watch::is_on()) && sampled::must_be_copied()) return nullptr;
  Units lent;
  Span* target = insist(size, [&] { return large::allocate_to_move(at.span, size, &lent); });
  if (target == nullptr) return nullptr;
  if (is_sampled ? sampled::move(at.span, target, size, lent) : large::move(at.span, target, lent))
    return start_of(target);
  idle::note_free();
  return nullptr;
}

}  // namespace rh
