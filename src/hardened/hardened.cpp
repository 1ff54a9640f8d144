#include "hardened/hardened.h"

#include "hardened/delay.h"
#include "hardened/empty.h"
#include "hardened/misuse.h"
#include "hardened/zeros.h"
#include "heap/shared.h"
#include "platform/report.h"

namespace rh::hardened {

constinit std::atomic<bool> g_strict{false};

namespace {

constexpr size_t kGuard = platform::kPageSize;

// From this alignment on a block has a tail only where its class is longer than it: it would take twice the memory.
constexpr size_t kNoTailFrom = 256;

// Longer blocks are not delayed: the guard costs a word for each of their pages.
constexpr size_t kMostDelayed = size_t{16} << 20;

// From here on a block has no memory while it is delayed.
constexpr size_t kLong = size_t{256} << 10;

// Blocks up to here are delayed in the places of small ones.
constexpr size_t kMostDelayedSmall = 1024;

bool is_small(size_t size, size_t alignment) { return size <= kMaxSmall - Tail::kLength && alignment <= kUnitSize; }

void* start_of(const Span* span) { return reinterpret_cast<void*>(g_realm.address(span)); }

// ---- blocks in slabs ----------------------------------------------------------------------------

// A block in a slab, in anybody's hands or none's.
class Small {
 public:
  Small(Span* slab, void* block) : slab_(slab), block_(block) {}
  explicit Small(void* block) : Small(slab::head(g_realm.span_of(block)), block) {}

  size_t size() const { return slab::requested_size(slab_, block_); }
  size_t room() const { return slab::properties(slab_).size; }
  bool is_free() const {
    return slab::is_noted_free(slab_, block_) || slab::is_marked(slab_, static_cast<const Block*>(block_));
  }
  Tail tail() const { return {block_, size(), room()}; }

  void set_size(size_t size) { g_realm.sizes().note(block_, size, slab_->size_class.load() == 0); }

  // Its first bytes were the heap's.
  void* hand_out(size_t size, Maker maker) {
    unsigned char* rest = static_cast<unsigned char*>(block_) + sizeof(Block);
    if (RH_UNLIKELY(!is_clear(rest, room() - sizeof(Block)))) fail_written(block_, room());
    clear(block_, sizeof(Block));
    set_size(size);
    tail().write(maker);
    return block_;
  }

  void note_free() {
    slab::note_free(slab_, block_);
    clear(block_, room());
  }

  Heap* owner() const { return owner_of(slab_); }

 private:
  Span* slab_;
  void* block_;
};

// ---- large blocks -------------------------------------------------------------------------------

// What a large block asks of the heap, so that there is a page for its guard.
size_t with_guard(size_t size) { return align_up(size, kGuard) + kGuard; }

// A large block. Behind it the rest of its span is inaccessible.
class Large {
 public:
  explicit Large(Span* span) : span_(span) {}

  size_t size() const { return span_->requested; }
  bool is_free() const { return large::is_delayed(span_); }
  Tail tail() const { return {start_of(span_), size(), guard_start() - start()}; }

  // Of a span that is a heap's, who gives it back without our knowing, its pages have to be mapped anew.
  void* hand_out(size_t size, Maker maker) {
    span_->requested = size;
    close();
    tail().write(maker);
    return start_of(span_);
  }

  void close() {
    platform::guard(guard_start(), end() - guard_start(), platform::GuardPrice::any);
    span_->altered = large::has_owner(span_);
    span_->zero = false;
  }

  bool open() { return platform::unguard(guard_start(), end() - guard_start()); }

  // While it is delayed it is inaccessible: a long one all of it, and its memory goes back meanwhile; of others the
  // first page and the last, for what goes back has to come again. False when the OS refuses.
  bool begin_delay() {
    if (end() - start() > kMostDelayed) return false;
    if (!close(start(), is_long() ? end() : start() + kGuard)) return false;
    if (!is_long() && guard_start() > start() + kGuard) close(guard_start() - kGuard, guard_start());
    span_->requested = large::kDelayed;
    return true;
  }

  bool end_delay() {
    span_->zero = is_long();
    return platform::unguard(start(), end() - start());
  }

 private:
  uintptr_t start() const { return g_realm.address(span_); }
  uintptr_t end() const { return start() + Units{span_->units}.bytes(); }
  uintptr_t guard_start() const { return start() + align_up(size(), kGuard); }
  bool is_long() const { return end() - start() > kLong; }
  static bool close(uintptr_t from, uintptr_t to) {
    return platform::guard(from, to - from, platform::GuardPrice::free_only);
  }

  Span* span_;
};

// ---- who frees ----------------------------------------------------------------------------------

// Where a library has its own copy of the C++ runtime, unseen from outside, its delete calls our free for what our new
// made, or the reverse: Rust's compiler does so.
bool is_tolerated(Maker maker, Maker freed_by) {
  return !g_strict.load(std::memory_order_relaxed) && (maker == Maker::c) != (freed_by == Maker::c);
}

// Returns if nothing is wrong that is not tolerated.
RH_COLD void judge_tail(const Tail& tail, const void* block, size_t size, Maker freed_by, const char* seen) {
  for (Maker maker : kMakers) {
    if (!tail.is(maker)) continue;
    if (is_tolerated(maker, freed_by)) return;
    fail_maker(block, size, maker, freed_by);
  }
  fail_overflow(block, size, seen);
}

RH_INLINE void check(const Tail& tail, const void* block, size_t size, Maker maker, const char* seen) {
  if (RH_UNLIKELY(!tail.is(maker))) judge_tail(tail, block, size, maker, seen);
}

RH_INLINE void check_size(const void* block, size_t size, size_t freed_as) {
  if (RH_UNLIKELY(freed_as != kUnknown && freed_as != size)) fail_size(block, size, freed_as);
}

// To the heap, of what was kept from use.
void let_go(void* block) {
  if (block == nullptr) return;
  size_t room = Small(block).room();
  if (RH_UNLIKELY(!is_clear(block, room))) fail_written(block, room);
  rh::deallocate(block);
}

void let_go(Span* span) {
  if (span != nullptr && Large(span).end_delay()) rh::deallocate(start_of(span));
}

void free_small(Small small, void* block) {
  small.note_free();
  Heap* heap = own_heap_if_any();
  // The memory of a first-class heap may be gone before the block's turn comes.
  bool at_once = heap == nullptr || small.owner() == nullptr || small.owner()->shared;
  if (at_once)
    rh::deallocate(block);
  else if (small.room() <= kMostDelayedSmall)
    let_go(exchange(heap->delayed.small, block));
  else
    let_go(exchange(heap->delayed.medium, block));
}

void free_large(Span* span) {
  Large large(span);
  Heap* heap = own_heap_if_any();
  if (heap != nullptr && !large::has_owner(span) && large.begin_delay())
    let_go(exchange(heap->delayed.large, span));
  else if (large::has_owner(span) || large.open())
    rh::deallocate(start_of(span));
}

// A live block of ours; ends the process for anything else.
BlockAt live(const void* pointer, const char* function) {
  BlockAt at = find_block(pointer);
  if (RH_UNLIKELY(!at.is_start())) fail_invalid(function, pointer);
  void* block = const_cast<void*>(pointer);
  bool is_free = at.is_large ? Large(at.span).is_free() : Small(at.span, block).is_free();
  if (RH_UNLIKELY(is_free)) fail_invalid(function, pointer);
  return at;
}

size_t size_at(const BlockAt& at) {
  return at.is_large ? Large(at.span).size() : Small(at.span, const_cast<void*>(at.pointer)).size();
}

Tail tail_at(const BlockAt& at) {
  return at.is_large ? Large(at.span).tail() : Small(at.span, const_cast<void*>(at.pointer)).tail();
}

void* resize_small(const BlockAt& at, size_t size) {
  void* block = const_cast<void*>(at.pointer);
  Small small(at.span, block);
  size_t before = small.size();
  if (!is_small(size, 1) || !rh::resize_in_place(at, size + Tail::kLength)) return nullptr;
  // What is no longer the user's, or not yet, reads as zero.
  unsigned char* bytes = static_cast<unsigned char*>(block);
  size_t from = size < before ? size : before;
  __builtin_memset(bytes + from, 0, small.room() - from);
  small.set_size(size);
  small.tail().write(Maker::c);
  return block;
}

// The heap changes the span to a new length, or gives another one with the same content; null when it can do neither.
Span* change_span(const BlockAt& at, size_t whole) {
  if (rh::resize_in_place(at, whole) != nullptr) return at.span;
  void* moved = rh::resize_by_moving(at, whole);
  return moved != nullptr ? g_realm.span_of(moved) : nullptr;
}

void clear_bytes(Span* span, size_t from, size_t to) {
  if (from < to) __builtin_memset(reinterpret_cast<void*>(g_realm.address(span) + from), 0, to - from);
}

void* resize_large(const BlockAt& at, size_t size) {
  Large large(at.span);
  size_t before = large.size(), whole = with_guard(size);
  Units units{at.span->units};
  if (is_small(size, 1) || size > kMaxRequest - kUnitSize || !large.open()) return nullptr;
  at.span->altered = false;
  at.span->zero = Units::holding(whole) > units;  // unless what comes to it does not
  Span* span = change_span(at, whole);
  if (span == nullptr) {
    at.span->requested = before;
    large.close();
    return nullptr;
  }
  // The tail, and what came to the span.
  size_t end = align_up(size, kGuard), page_end = align_up(before, kGuard);
  clear_bytes(span, before, page_end < end ? page_end : end);
  if (!span->zero) clear_bytes(span, units.bytes(), end);
  return Large(span).hand_out(size, Maker::c);
}

}  // namespace

RH_NOINLINE static void* allocate_large(Heap* heap, size_t alignment, size_t size, Maker maker) {
  if (size > kMaxRequest - kUnitSize || alignment > kMaxAlignment) return nullptr;
  size_t whole = with_guard(size);
  void* block = rh::allocate_in(heap, alignment, whole > kMaxSmall ? whole : kMaxSmall + 1, true);
  return block != nullptr ? Large(g_realm.span_of(block)).hand_out(size, maker) : nullptr;
}

void* allocate(Heap* heap, size_t alignment, size_t size, Maker maker) {
  if (RH_UNLIKELY(!is_small(size, alignment))) return allocate_large(heap, alignment, size, maker);
  // One of a first-class heap ends with it, so it has to be there.
  if (RH_UNLIKELY(size == 0) && heap == nullptr)
    if (void* block = empty::allocate(alignment)) return block;
  size_t tail = size == 0 || alignment < kNoTailFrom ? Tail::kLength : 0;
  void* block = heap != nullptr           ? rh::allocate_in(heap, alignment, size + tail, false)
                : alignment > kBlockAlign ? rh::allocate_aligned(alignment, size + tail)
                                          : rh::allocate(size + tail);
  return RH_LIKELY(block != nullptr) ? Small(block).hand_out(size, maker) : nullptr;
}

Freed free(void* block, Maker maker, size_t size) {
  BlockAt at = find_block(block);
  if (RH_UNLIKELY(!at.is_start())) {
    if (empty::free(block)) return Freed::done;
    if (empty::holds(block)) fail_invalid("free", block);
    if (!in_realm(block)) return Freed::foreign;
    fail_invalid("free", block);
  }
  bool is_free = at.is_large ? Large(at.span).is_free() : Small(at.span, block).is_free();
  if (RH_UNLIKELY(is_free)) fail_twice(block, at.usable_size());
  size_t present = size_at(at);
  check(tail_at(at), block, present, maker, "its free");
  check_size(block, present, size);
  if (RH_UNLIKELY(at.is_large))
    free_large(at.span);
  else
    free_small(Small(at.span, block), block);
  return Freed::done;
}

size_t good_size(size_t size) { return size <= kMaxRequest - kUnitSize ? size : 0; }

bool is_empty_block(const void* pointer) { return empty::is_live(pointer); }

bool holds(const void* pointer) { return in_realm(pointer) || empty::holds(pointer); }

size_t size_of(const void* block, const char* function) {
  return empty::is_live(block) ? 0 : size_at(live(block, function));
}

void* resize(void* block, size_t size) {
  BlockAt at = live(block, "realloc");
  check(tail_at(at), block, size_at(at), Maker::c, "its realloc");
  return at.is_large ? resize_large(at, size) : resize_small(at, size);
}

Heap* heap_beside(const void* block) {
  return empty::holds(block) ? nullptr : shared::heap_beside(find_block(block).span);
}

void flush() {
  Heap* heap = own_heap_if_any();
  if (heap == nullptr) return;
  take_each(heap->delayed.small, [](void* block) { let_go(block); });
  take_each(heap->delayed.medium, [](void* block) { let_go(block); });
  take_each(heap->delayed.large, [](Span* span) { let_go(span); });
}

}  // namespace rh::hardened
