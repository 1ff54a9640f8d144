#include "slabs/slab.h"

#include "platform/pages.h"
#include "platform/report.h"

namespace rh::slab {

void start(Span* span, SizeClass size_class, Heap* owner, uint32_t number) {
  span->free = nullptr;
  span->freed.portion = size_class::kPortions[size_class];
  span->freed.at_fork = kNoPosition;
  span->freed.returned = kNoPosition;
  span->stamp = number;
  span->countdown.store(0);
  span->armed.store(0);
  span->outstanding.store(0);
  span->free_count = 0;
  span->others.set_returned(0);
  span->carved.store(0);
  span->bin.store(size_class);
  for (uint32_t unit = 1; unit < span->units; ++unit) {
    span[unit].units = unit;
    span[unit].kind.store(SpanKind::interior);
  }
  span->kind.store_release(SpanKind::slab);
  span->owner.store_release(owner);
}

void finish(Span* slab) {
  slab->zero = false;
  for (uint32_t unit = 0; unit < slab->units; ++unit) {
    slab[unit].kind.store(SpanKind::none);
    slab[unit].holes = 0;
  }
  slab->owner.store(nullptr);
}

void fail_twice(const Span* slab, const Block* block) {
  Text message;
  message << "free of a block that is free already: ";
  message.hex(address_of(block)) << ", of ";
  message.decimal(properties(slab).size) << " bytes";
  fatal(message);
}

void fail_written(const Block* block) {
  Text message;
  message << "write to a free block, seen when it was to be used again: ";
  fatal(message.hex(address_of(block)));
}

void fail_broken(const Span* slab, const char* what) {
  Text message;
  message << what << ", seen later: in the slab at ";
  message.hex(g_realm.address(slab)) << " of blocks of ";
  message.decimal(properties(slab).size) << " bytes";
  fatal(message);
}

namespace {

// Moves the local frees since the last arming into free_count.
void settle(Span* slab) {
  uint16_t freed = unsettled(slab);
  add(slab->free_count, freed);
  add(slab->outstanding, 0u - freed);
  slab->armed.store(static_cast<uint16_t>(slab->armed.load() - freed));
}

constexpr const char* kTwice = "free of a block that was free already";

void note_begun(Span* slab, unsigned count) {
  if constexpr (platform::kThreadsAreTerminated) slab->freed.begun = static_cast<uint16_t>(count);
}

void forget_freed(Span* slab) {
  slab->free = nullptr;
  slab->free_count = 0;
  note_begun(slab, 0);
}

// Whether a thread was terminated while it freed: then a block may be in the list and not counted.
bool was_cut_short(const Span* slab, unsigned count) {
  static_assert(!platform::kThreadsAreTerminated || !platform::kReplacesByZeros, "holes take blocks out of the list");
  return platform::kThreadsAreTerminated && slab->armed.load() != kUncounted && slab->freed.begun != count;
}

Block* block_at(uintptr_t address) { return reinterpret_cast<Block*>(address); }

// Notes left from an earlier slab of other blocks do not apply to these.
void note_fresh_from(const Span* slab, uintptr_t first, uintptr_t last) {
  if constexpr (!kExactSizes) return;
  for (uintptr_t at = first; at <= last; at += properties(slab).size)
    g_realm.sizes().note_fresh(block_at(at), is_smallest(slab));
}

}  // namespace

void arm(Span* slab, unsigned frees) {
  if (slab->armed.load() == kUncounted) note_begun(slab, 0);  // those went into the bin
  settle(slab);
  slab->armed.store(static_cast<uint16_t>(frees));
  slab->countdown.store_release(static_cast<uint16_t>(frees));
  rejoin(slab);
}

void leave(Span* slab) { slab->owner.store_release(with_note(slab->owner.load(), kLeft)); }

// Frees since the last arming are in neither count yet: they change nothing.
bool is_balanced(const Span* slab) {
  unsigned sum = 0u + slab->outstanding.load() + slab->free_count + slab->others.returned();
  unsigned carved = slab->carved.load();
  return static_cast<uint16_t>(sum + hollow_blocks(slab)) == carved && carved <= capacity(slab);
}

// All orders of a few.
constexpr unsigned kFew = 4, kOrders = 24;
constexpr auto kOrderOf = [] {
  size_class::Table<uint8_t[kFew], kOrders> table{};
  unsigned number = 0;
  for (unsigned word = 0; word < kFew * kFew * kFew * kFew; ++word) {
    unsigned seen = 0;
    for (unsigned at = 0; at < kFew; ++at) seen |= 1u << (word >> 2 * at) % kFew;
    if (seen != (1u << kFew) - 1) continue;
    for (unsigned at = 0; at < kFew; ++at) table.entries[number][at] = (word >> 2 * at) % kFew;
    ++number;
  }
  return table;
}();

// What hardened builds do instead of linking them in address order: they read as zero and say that they are free, and
// which of a few neighbours follows cannot be foreseen. Only of a few: the program's own walks would take twice the
// time.
static Block* link_shuffled(const Span* slab, uintptr_t first, unsigned count) {
  size_t size = properties(slab).size;
  if (!slab->zero) __builtin_memset(reinterpret_cast<void*>(first), 0, count * size);
  uint64_t random = mix(secret(Secret::order) ^ first);
  Block* next = nullptr;
  for (unsigned left = count; left != 0;) {
    unsigned few = (left - 1) % kFew + 1;
    left -= few;
    for (unsigned index : kOrderOf[static_cast<size_t>((random >> 32) * kOrders >> 32)]) {
      if (RH_UNLIKELY(index >= few)) continue;
      Block* block = block_at(first + (left + index) * size);
      block->next = next;
      block->mark = mark_of(slab, block);
      next = block;
    }
    random = mix(random + 1);
  }
  return next;
}

static Block* link_in_order(const Span* slab, uintptr_t first, uintptr_t last) {
  size_t size = properties(slab).size;
  for (uintptr_t at = first; at < last; at += size) block_at(at)->next = block_at(at + size);
  block_at(last)->next = nullptr;
  return block_at(first);
}

// Whether what ends there ends with its page, or a vector's length before: who reads it by vectors, as memcmp and
// strlen do, reaches into the next page. Where that was never touched the processor takes a hundred times as long, even
// if the instruction leaves those bytes out (docs/design/slabs.md).
static bool ends_with_page(uintptr_t end) {
  constexpr size_t kVector = 64;
  return (0 - end) % platform::kPageSize < kVector;
}

// Of so few, one less would be felt; they are no short strings either.
constexpr unsigned kFewCarved = 8;

RH_INLINE static Taken carve_here(Span* slab, unsigned most) {
  const size_class::Properties& own = properties(slab);
  unsigned carved = slab->carved.load();
  unsigned count = capacity(slab) - carved;
  if (count == 0) return {nullptr, false};
  uintptr_t first = g_realm.address(slab) + carved * size_t{own.size};
  if (count > most) {
    count = most;
    while (count > kFewCarved && ends_with_page(first + count * size_t{own.size})) --count;
  }
  uintptr_t last = first + (count - 1) * size_t{own.size};
  Block* linked = kHardened ? link_shuffled(slab, first, count) : link_in_order(slab, first, last);
  note_fresh_from(slab, first, last);
  add(slab->carved, count);
  add(slab->outstanding, count);
  return {linked, slab->zero, static_cast<uint16_t>(count)};
}

Taken carve(Span* slab, unsigned most) {
  unsigned page = properties(slab).carve;
  return carve_here(slab, most < page ? most : page);
}

// About two pages, but no second block where one has a page to itself: unless it has probably been touched before, and
// lies ready in the bin.
static unsigned carved_at_a_time(const Span* slab) {
  constexpr unsigned kWarm = 8;
  const unsigned page = properties(slab).carve;
  if (page > 1) return 2 * page;
  return kHardened || slab->zero || !is_binned(slab) ? 1 : kWarm;
}

RH_NOINLINE static Taken take_new(Span* slab) {
  Taken taken = carve_here(slab, carved_at_a_time(slab));
  bool hollow = taken.blocks == nullptr && slab->outstanding.load() != slab->carved.load();
  return RH_UNLIKELY(hollow) ? fill_hole(slab) : taken;
}

// Books the blocks freed locally as handed out, and arms anew. Returns how many there are.
static unsigned hand_out_local(Span* slab) {
  uint16_t count = static_cast<uint16_t>(slab->free_count + unsettled(slab));
  if (RH_UNLIKELY(was_cut_short(slab, count))) {
    recount(slab);
    count = slab->free_count;
  }
  add(slab->outstanding, slab->free_count);
  forget_freed(slab);
  slab->armed.store(at_taking(slab));
  slab->countdown.store(at_taking(slab));
  return count;
}

static unsigned hand_out_returned(Span* slab) {
  unsigned count = slab->others.returned();
  add(slab->outstanding, count);
  slab->others.set_returned(0);
  return count;
}

Taken take(Span* slab) {
  Block* first = slab->free;
  unsigned count = hand_out_local(slab);
  if (RH_UNLIKELY(count == 0)) {
    first = returned(slab);
    count = hand_out_returned(slab);
    if (count == 0) return take_new(slab);
    set_returned(slab, nullptr);
  }
  return {first, false, static_cast<uint16_t>(count)};
}

// A block that was freed twice unnoticed makes its list circular: it is followed no further than it may be long.
static Block* last_of(Block* first, unsigned count) {
  for (; count > 1 && first->next != nullptr; --count) first = first->next;
  return first;
}

void share(Span* slab) {
  settle(slab);
  if (!platform::kReplacesByZeros || slab->free_count == 0) return;
  if (slab->others.returned() != 0) last_of(slab->free, slab->free_count)->next = returned(slab);
  set_returned(slab, slab->free);
  add_returned(slab, slab->free_count);
  forget_freed(slab);
}

unsigned count_taken(const Span* slab, Block* first, Block** last) {
  unsigned count = 0;
  unsigned most = outstanding(slab);
  for (Block* block = first; block != nullptr; block = block->next) {
    if (RH_UNLIKELY(++count > most)) fail_broken(slab, kTwice);
    if (last != nullptr) *last = block;
  }
  return count;
}

void give_back(Span* slab, Block* first, Block* last, unsigned count) {
  last->next = returned(slab);
  set_returned(slab, first);
  add_returned(slab, count);
  add(slab->outstanding, 0u - count);
}

void give_back_bin(Span* slab, Block* first) {
  Block* last = first;
  unsigned count = count_taken(slab, first, &last);
  give_back(slab, first, last, count);
}

void clear_uncarved(Span* slab) {
  if (slab->zero) return;
  uintptr_t start = g_realm.address(slab);
  uintptr_t end = start + Units{slab->units}.bytes();
  start += slab->carved.load() * size_t{properties(slab).size};
  slab->zero = platform::make_zero(start, end);
}

void recount(Span* slab) {
  settle(slab);
  uint16_t linked = 0, most = static_cast<uint16_t>(capacity(slab));
  for (const Block* block = slab->free; block != nullptr && linked < most; block = block->next) ++linked;
  add(slab->outstanding, 0u + slab->free_count - linked);
  slab->free_count = linked;
  // Who came to the end of its count could not look any more.
  if (slab->armed.load() == kUncounted && slab->state != SlabState::current) arm(slab, 1);
  note_begun(slab, linked);
}

}  // namespace rh::slab
