#include "hardened/hardened.h"

#include "arena/bars.h"
#include "hardened/delay.h"
#include "hardened/empty.h"
#include "hardened/memory_tags.h"
#include "hardened/misuse.h"
#include "hardened/small.h"
#include "heap/registry.h"
#include "heap/shared.h"
#include "platform/pages.h"
#include "platform/report.h"

namespace rh::hardened {

constinit std::atomic<bool> g_strict{false};

namespace {

constexpr size_t kGuard = kSlabGuard;

// From this alignment on a block has a tail only where its class is longer than it: it would take twice the memory.
constexpr size_t kNoTailFrom = 256;

// Longer blocks are not delayed: the guard costs a word for each of their pages.
constexpr size_t kMostDelayed = size_t{16} << 20;

// From here on a block has no memory while it is delayed.
constexpr size_t kLong = size_t{1} << 20;

// So much is cleared, and looked at, at each end of a large block that keeps its memory while it is delayed.
constexpr size_t kEnd = 512;

bool is_small(size_t size, size_t alignment) { return size <= kMaxSmall - Tail::kLength && alignment <= kUnitSize; }

// ---- large blocks -------------------------------------------------------------------------------

// What a large block asks of the heap, so that there is a page for its guard.
size_t with_guard(size_t size) { return align_up(size, kGuard) + kGuard; }

// A large block. The last page of its span is a guard.
class Large {
 public:
  explicit Large(Span* span) : span_(span) {}

  size_t size() const { return span_->requested; }
  bool is_free() const { return large::is_delayed(span_); }
  void* block() const { return reinterpret_cast<void*>(start()); }
  Tail tail() const {
    size_t room = align_up(size() + Tail::kLength, Tail::kLength), most = end() - kGuard - start();
    return {block(), size(), room < most ? room : most};
  }

  void* hand_out(size_t size, Maker maker) {
    bars::put_at_end(span_, bars::Elsewhere::stays);
    span_->requested = size;
    span_->zero = false;
    tail().write(maker);
    return block();
  }

  [[nodiscard]] bool open() { return bars::open(span_, span_ + span_->units); }

  // A long one loses its memory while it is delayed, and nobody can touch it. Of others the first bytes and the last
  // are cleared. False when it is too long, or the OS refuses.
  bool begin_delay() {
    if (end() - start() > kMostDelayed) return false;
    if (is_long() && !take_memory()) return false;
    if (!is_long()) each_end([](unsigned char* bytes, size_t length) { clear(bytes, Steps::of(length)); });
    span_->owner.store(with_note(span_->owner.load(), kDelayed));
    return true;
  }

  // Gives it to the heap. Not when the OS refuses, or somebody has written to it: nobody is to have it again.
  void end_delay() {
    if (is_long() && platform::kChargesUntouched) return large::free_uncommitted(span_);
    if (is_long() ? restore_memory() : is_unwritten()) rh::deallocate(block());
  }

 private:
  uintptr_t start() const { return g_realm.address(span_); }
  uintptr_t end() const { return start() + Units{span_->units}.bytes(); }
  bool is_long() const { return end() - start() > kLong && platform::is_whole_pages(start(), end()); }

  // Where memory is charged when it is committed, it may not be had back at the end of the delay: the arena takes the
  // span without it.
  bool take_memory() {
    if constexpr (!platform::kChargesUntouched)
      return platform::guard(start(), end() - start(), platform::GuardPrice::free_only);
    return !large::has_store(span_) && platform::purge(start(), end() - start()) == platform::Purged::uncommitted;
  }

  bool restore_memory() {
    bars::forget(span_ + span_->units - 1, span_ + span_->units);
    span_->zero = platform::unguard(start(), end() - start());
    return span_->zero;
  }

  bool is_unwritten() {
    span_->zero = false;
    bool unwritten = true;
    each_end([&](const unsigned char* bytes, size_t length) {
      unwritten = unwritten && is_clear(bytes, Steps::of(length));
    });
    if (RH_UNLIKELY(!unwritten)) tell_written(block(), size());
    return unwritten;
  }

  template <typename Visit> void each_end(Visit visit) const {
    unsigned char* bytes = static_cast<unsigned char*>(block());
    size_t whole = align_up(size(), sizeof(Block)), length = whole < kEnd ? whole : kEnd;
    if (whole == 0) return;
    visit(bytes, length);
    visit(bytes + whole - length, length);
  }

  Span* span_;
};

// ---- who frees ----------------------------------------------------------------------------------

// Where a library has its own copy of the C++ runtime, unseen from outside, its delete calls our free for what our new
// made, or the reverse: Rust's compiler does so.
bool is_tolerated(Maker maker, Maker freed_by) {
  if (freed_by == Maker::any) return true;
  return !g_strict.load(std::memory_order_relaxed) && (maker == Maker::c) != (freed_by == Maker::c);
}

RH_COLD void judge_tail(const Tail& tail, const void* block, size_t size, Maker freed_by, const char* seen) {
  for (Maker maker : kMakers) {
    if (!tail.is(maker)) continue;
    if (!is_tolerated(maker, freed_by)) tell_maker(block, size, maker, freed_by);
    return;
  }
  tell_overflow(block, size, seen);
}

RH_INLINE void check(const Tail& tail, const void* block, size_t size, Maker maker, const char* seen) {
  platform::Unchecked unchecked;
  if (RH_UNLIKELY(!tail.is(maker))) judge_tail(tail, block, size, maker, seen);
}

RH_INLINE void check_size(const void* block, size_t size, size_t freed_as) {
  if (RH_UNLIKELY(freed_as != kUnknown && freed_as != size)) tell_size(block, size, freed_as);
}

void let_go_large(Span* span) {
  if (span != nullptr) Large(span).end_delay();
}

void release_small(Small small, void* block) {
  small.note_free();
  Heap* heap = own_heap_if_any();
  // The memory of a first-class heap may be gone before the block's turn comes.
  bool at_once = heap == nullptr || small.owner() == nullptr || is_first_class(small.owner());
  if (at_once)
    rh::deallocate(block);
  else if (small.room() <= kMostDelayedSmall)
    let_go(exchange(heap->delayed.small, block, g_quarantine.load(std::memory_order_relaxed)));
  else
    let_go(exchange(heap->delayed.medium, block));
}

void release_large(Span* span) {
  Large large(span);
  Heap* heap = own_heap_if_any();
  bool stays = !large::has_owner(span) || !is_first_class(large::lister_of(span));
  if (heap != nullptr && stays && large.begin_delay())
    let_go_large(exchange(heap->delayed.large, span));
  else
    rh::deallocate(large.block());
}

bool is_noted_free(const BlockAt& at) {
  return at.is_large() ? Large(at.span).is_free() : Small(at.span, const_cast<void*>(at.pointer)).is_free();
}

bool is_live(const BlockAt& at) { return at.is_start() && !is_noted_free(at); }

// Whether a pointer to a live block is the one that was handed out.
bool has_its_tag(const BlockAt& at, const void* pointer) {
  return at.is_large() ? platform::tag_of(pointer) == 0 || !platform::has_tags()
                       : memory_tags::fits(pointer, at.pointer);
}

// A live block of ours; ends the process for anything else.
BlockAt live(const void* pointer, const char* function) {
  BlockAt at = find_block(memory_tags::plain(pointer));
  if (RH_UNLIKELY(!is_live(at) || !has_its_tag(at, pointer))) fail_invalid(function, at.pointer);
  return at;
}

// The program has changed what its pages are: they may be inaccessible.
bool is_altered(const BlockAt& at) { return at.is_large() && at.span->altered; }

size_t size_at(const BlockAt& at) {
  return at.is_large() ? Large(at.span).size() : Small(at.span, const_cast<void*>(at.pointer)).size();
}

Tail tail_at(const BlockAt& at) {
  return at.is_large() ? Large(at.span).tail() : Small(at.span, const_cast<void*>(at.pointer)).tail();
}

void* resize_small(const BlockAt& at, size_t size, Resize how) {
  platform::Unchecked unchecked;
  void* block = const_cast<void*>(at.pointer);
  Small small(at.span, block);
  size_t before = small.size();
  if (!is_small(size, 1)) return nullptr;
  // One that has no whole tail becomes shorter all the same.
  bool loose = how == Resize::stays_loose;
  size_t tail = loose && size <= before ? 0 : Tail::kLength;
  if (!rh::resize_in_place(at, size + tail, loose ? Fit::loose : Fit::close)) return nullptr;
  small.resize(before, size);
  unsigned tag = platform::has_tags() ? platform::stored_tag(block) : 0;
  return tag == 0 ? block : memory_tags::cover(block, tag, size, small.room());
}

// The heap changes the span to a new length, or gives another one with the same content; null when it can do neither.
Span* change_span(const BlockAt& at, size_t whole, Resize how) {
  if (rh::resize_in_place(at, whole, how == Resize::stays_loose ? Fit::loose : Fit::close) != nullptr) return at.span;
  void* moved = how == Resize::moves ? rh::resize_by_moving(at, whole) : nullptr;
  return moved != nullptr ? g_realm.span_of(moved) : nullptr;
}

void* resize_large(const BlockAt& at, size_t size, Resize how) {
  if ((is_small(size, 1) && how != Resize::stays_loose) || size > kMaxRequest - kUnitSize) return nullptr;
  Large large(at.span);
  size_t before = large.size();
  if (!large.open()) return nullptr;  // pages may move
  Span* span = change_span(at, with_guard(size), how);
  bool changed = span != nullptr;
  void* block = Large(changed ? span : at.span).hand_out(changed ? size : before, Maker::c);
  return changed ? block : nullptr;
}

}  // namespace

RH_NOINLINE static void* allocate_large(Heap* heap, size_t alignment, size_t size, Maker maker, bool zeroed) {
  if (size > kMaxRequest - kUnitSize || alignment > kMaxAlignment) return nullptr;
  size_t whole = with_guard(size);
  void* block = rh::allocate_in(heap, alignment, whole > kMaxSmall ? whole : kMaxSmall + 1, false);
  if (block == nullptr) return nullptr;
  Span* span = g_realm.span_of(block);
  if (zeroed) large::clear(span, size);  // not up to its end, where a guard may be
  return Large(span).hand_out(size, maker);
}

RH_INLINE static void* take(Heap* heap, size_t alignment, size_t whole) {
  if (RH_UNLIKELY(heap != nullptr)) return rh::allocate_in(heap, alignment, whole, false);
  return RH_UNLIKELY(alignment > kBlockAlign) ? rh::allocate_aligned(alignment, whole) : rh::allocate(whole);
}

void* allocate(Heap* heap, size_t alignment, size_t size, Maker maker, bool zeroed) {
  if (RH_UNLIKELY(!is_small(size, alignment))) return allocate_large(heap, alignment, size, maker, zeroed);
  // One of a first-class heap ends with it, so it has to be there.
  if (RH_UNLIKELY(size == 0) && (heap == nullptr || !is_first_class(heap)))
    if (void* block = empty::allocate(alignment)) return block;
  size_t tail = size == 0 || alignment < kNoTailFrom ? Tail::kLength : 0;
  for (;;) {
    void* block = take(heap, alignment, size + tail);
    if (RH_UNLIKELY(block == nullptr)) return nullptr;
    if (RH_UNLIKELY(g_realm.span_of(block)->kind.load() == SpanKind::large)) {
      // Where nothing can be trusted any more the heap gives whole spans, without room for a guard.
      rh::deallocate(block);
      return allocate_large(heap, alignment, size, maker, zeroed);
    }
    Small small(block);
    if (RH_LIKELY(small.becomes_clear())) return small.hand_out(size, maker);
    give_up(block);
  }
}

Freed free(void* pointer, Maker maker, size_t size) {
  void* block = memory_tags::plain(pointer);
  BlockAt at = find_block(block);
  if (RH_UNLIKELY(!at.is_start())) {
    if (empty::free(block)) return Freed::done;
    if (!in_realm(block)) return Freed::foreign;
    tell_invalid(block);
    return Freed::done;
  }
  if (RH_UNLIKELY(is_noted_free(at))) {
    tell_twice(block, at.usable_size());
    return Freed::done;
  }
  if (RH_UNLIKELY(is_altered(at))) return rh::deallocate(block);
  if (RH_UNLIKELY(!has_its_tag(at, pointer))) {
    tell_tag(pointer, block);
    return Freed::done;
  }
  size_t present = size_at(at);
  check(tail_at(at), block, present, maker, "its free");
  check_size(block, present, size);
  if (RH_UNLIKELY(at.is_large()))
    release_large(at.span);
  else
    release_small(Small(at.span, block), block);
  return Freed::done;
}

size_t good_size(size_t size) { return size; }

bool is_empty_block(const void* pointer) { return empty::is_live(pointer); }

bool is_live(const void* pointer) {
  BlockAt at = find_block(memory_tags::plain(pointer));
  return empty::is_live(pointer) || (is_live(at) && has_its_tag(at, pointer));
}

bool is_intact(const void* pointer) {
  if (empty::is_live(pointer)) return true;
  BlockAt at = find_block(memory_tags::plain(pointer));
  if (!is_live(at)) return false;
  if (is_altered(at)) return true;
  platform::Unchecked unchecked;
  Tail tail = tail_at(at);
  return tail.is(Maker::c) || tail.is(Maker::single) || tail.is(Maker::array);
}

void* start_of(const void* pointer, const char* function) {
  if (empty::holds(pointer)) return const_cast<void*>(pointer);
  BlockAt at = find_block(memory_tags::plain(pointer));
  if (RH_UNLIKELY(at.span == nullptr)) fail_invalid(function, pointer);
  at.pointer = at.start();
  if (RH_UNLIKELY(at.is_small() && !at.is_start())) fail_invalid(function, pointer);
  if (RH_UNLIKELY(address_of(memory_tags::plain(pointer)) - address_of(at.pointer) > size_at(at)))
    fail_invalid(function, pointer);
  return platform::with_tag(at.pointer, platform::tag_of(pointer));
}

bool holds(const void* pointer) { return in_realm(memory_tags::plain(pointer)) || empty::holds(pointer); }

size_t size_of(const void* block, const char* function) {
  return empty::is_live(block) ? 0 : size_at(live(block, function));
}

void* resize(void* block, size_t size, Resize how) {
  BlockAt at = live(block, "realloc");
  if (is_altered(at)) return nullptr;
  check(tail_at(at), at.pointer, size_at(at), Maker::c, "its realloc");
  return at.is_large() ? resize_large(at, size, how) : resize_small(at, size, how);
}

Heap* heap_of(const void* pointer) {
  if (empty::holds(pointer)) return nullptr;
  BlockAt at = find_block(memory_tags::plain(pointer));
  return at.span != nullptr ? shared::heap_of(at.span) : nullptr;
}

Heap* heap_beside(const void* block) {
  return empty::holds(block) ? nullptr : shared::heap_beside(find_block(memory_tags::plain(block)).span);
}

Partition partition_of(const void* block) {
  block = memory_tags::plain(block);
  return in_realm(block) ? rh::partition_of(g_realm.span_of(block)) : kUntyped;
}

void flush(Heap* heap) {
  void (*let_go_small)(void*) = heap == own_heap_if_any() ? let_go : let_go_from_outside;
  take_each(heap->delayed.small, let_go_small);
  take_each(heap->delayed.medium, let_go_small);
  take_each(heap->delayed.large, let_go_large);
}

void flush_all() {
  for (Heap* heap = registry::threads(); heap != nullptr; heap = heap->next) flush(heap);
}

}  // namespace rh::hardened
