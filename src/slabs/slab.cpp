#include "slabs/slab.h"

#include "platform/report.h"

namespace rh::slab {

constinit const Block g_end{const_cast<Block*>(&g_end)};
constinit const Block g_batch_end{const_cast<Block*>(&g_batch_end)};

void start(Span* span, SizeClass size_class, Heap* owner) {
  span->free = span->returned = list_end();
  span->countdown.store(0);
  span->armed.store(0);
  span->outstanding.store(0);
  span->free_count = span->returned_count = 0;
  span->carved.store(0);
  span->size_class.store(size_class);
  for (uint32_t unit = 1; unit < span->units; ++unit) {
    span[unit].units = unit;
    span[unit].kind.store(SpanKind::interior);
  }
  span->kind.store_release(SpanKind::slab);
  span->owner.store_release(owner);
}

void finish(Span* slab) {
  for (uint32_t unit = 0; unit < slab->units; ++unit) {
    slab[unit].kind.store(SpanKind::none);
    slab[unit].holes = 0;
  }
  slab->owner.store(nullptr);
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
  uint16_t left = slab->countdown.load();
  uint16_t freed = static_cast<uint16_t>(slab->armed.load() - left);
  slab->armed.store(left);
  add(slab->free_count, freed);
  add(slab->outstanding, 0u - freed);
}

constexpr const char* kTwice = "free of a block that was free already";
constexpr const char* kWithin = "free of a pointer into a block";

// Follows a list and adds up where its members lie. Every freed block is stepped over once, so each instruction counts:
// two per step, as long as the compiler does not keep the addresses to add them up in an order of its own.
struct Walk {
  Block* block;
  uintptr_t sum = 0;

  RH_INLINE void step() {
    sum += address_of(block);
    asm("" : "+r"(sum));
    block = block->next;
  }
  RH_INLINE void four() { step(), step(), step(), step(); }
  RH_INLINE void sixteen() { four(), four(), four(), four(); }
};

// Returns the last of a list's `count` members.
RH_INLINE Block* last_of(const Span* slab, Block* first, unsigned count) {
  Walk walk{first};
  unsigned left = count - 1;
  for (unsigned round = left / 32; round != 0; --round) walk.sixteen(), walk.sixteen();
  if (left & 16) walk.sixteen();
  if (left & 8) walk.four(), walk.four();
  if (left & 4) walk.four();
  if (left & 2) walk.step(), walk.step();
  if (left & 1) walk.step();
  // A block linked twice makes the list circular; one that is in another list as well leads out of this one.
  Block* last = walk.block;
  if (RH_UNLIKELY(last == &g_end || last->next != &g_end)) fail_broken(slab, kTwice);
  uintptr_t offsets = walk.sum + address_of(last) - count * g_realm.address(slab);
  if (RH_UNLIKELY(offsets % properties(slab).size != 0)) fail_broken(slab, kWithin);
  return last;
}

Block* block_at(uintptr_t address) { return reinterpret_cast<Block*>(address); }

// Notes left from an earlier slab of other blocks do not apply to these.
void note_free_from(const Span* slab, uintptr_t first, uintptr_t last) {
  if constexpr (!kExactSizes) return;
  for (uintptr_t at = first; at <= last; at += properties(slab).size) note_free(slab, block_at(at));
}

}  // namespace

void arm(Span* slab, unsigned frees) {
  settle(slab);
  slab->armed.store(static_cast<uint16_t>(frees));
  slab->countdown.store_release(static_cast<uint16_t>(frees));
  rejoin(slab);
}

void leave(Span* slab) {
  slab->owner.store(reinterpret_cast<Heap*>(reinterpret_cast<uintptr_t>(slab->owner.load()) | kLeft));
}

// Frees since the last arming are in neither count yet: they change nothing.
bool is_balanced(const Span* slab) {
  unsigned sum = 0u + slab->outstanding.load() + slab->free_count + slab->returned_count;
  unsigned carved = slab->carved.load();
  return static_cast<uint16_t>(sum + hollow_blocks(slab)) == carved && carved <= properties(slab).capacity;
}

// Links them in address order.
RH_INLINE static Taken carve_here(Span* slab, unsigned most) {
  const size_class::Properties& own = properties(slab);
  unsigned carved = slab->carved.load();
  unsigned count = own.capacity - carved;
  if (count > most) count = most;
  if (count == 0) return {nullptr, false};
  uintptr_t first = g_realm.address(slab) + carved * size_t{own.size};
  uintptr_t last = first + (count - 1) * size_t{own.size};
  for (uintptr_t at = first; at < last; at += own.size) block_at(at)->next = block_at(at + own.size);
  block_at(last)->next = nullptr;
  note_free_from(slab, first, last);
  add(slab->carved, count);
  add(slab->outstanding, count);
  return {block_at(first), slab->zero};
}

Taken carve(Span* slab, unsigned most) {
  unsigned page = properties(slab).carve;
  return carve_here(slab, most < page ? most : page);
}

// About two pages, but no second block where one has a page to itself.
static Taken carve_much(Span* slab) {
  unsigned page = properties(slab).carve;
  return carve_here(slab, page > 1 ? 2 * page : 1);
}

RH_NOINLINE static Taken take_new(Span* slab) {
  Taken taken = carve_much(slab);
  bool hollow = taken.blocks == nullptr && slab->outstanding.load() != slab->carved.load();
  return RH_UNLIKELY(hollow) ? fill_hole(slab) : taken;
}

// Books the blocks freed locally as handed out, and arms with kNever. Returns how many there are.
static unsigned hand_out_local(Span* slab) {
  uint16_t unsettled = static_cast<uint16_t>(slab->armed.load() - slab->countdown.load());
  uint16_t count = static_cast<uint16_t>(slab->free_count + unsettled);
  add(slab->outstanding, slab->free_count);
  slab->free_count = 0;
  slab->armed.store(kNever);
  slab->countdown.store(kNever);
  return count;
}

static unsigned hand_out_returned(Span* slab) {
  unsigned count = slab->returned_count;
  add(slab->outstanding, count);
  slab->returned_count = 0;
  return count;
}

// To follow a list that was not used for a while takes one miss after the other, in an order no processor foresees. So
// the lines in which blocks begin are asked for beforehand: then the misses overlap. Not when few of them are needed,
// and not when all blocks are free: then they went through the program's hands just now, for a slab that is empty and
// not in use is given up.
RH_INLINE static void prefetch(const Span* slab, unsigned count) {
  constexpr size_t kLine = 64, kFew = 6;
  size_t carved = slab->carved.load(), size = properties(slab).size;
  if (kFew * count < carved || count == carved) return;
  uintptr_t at = g_realm.address(slab), end = at + carved * size;
  size_t step = size < kLine ? kLine : size;
  for (; at < end; at += 4 * step) {
    __builtin_prefetch(block_at(at));
    __builtin_prefetch(block_at(at + step));
    __builtin_prefetch(block_at(at + 2 * step));
    __builtin_prefetch(block_at(at + 3 * step));
  }
}

Taken take(Span* slab) {
  Block** list = &slab->free;
  unsigned count = hand_out_local(slab);
  if (RH_UNLIKELY(count == 0)) {
    list = &slab->returned;
    count = hand_out_returned(slab);
    if (count == 0) return take_new(slab);
  }
  Block* first = *list;
  prefetch(slab, count);
  last_of(slab, first, count)->next = nullptr;
  *list = list_end();
  return {first, false};
}

void share(Span* slab) {
  settle(slab);
  if (!platform::kReplacesByZeros || slab->free_count == 0) return;
  if (slab->returned_count != 0) last_of(slab, slab->free, slab->free_count)->next = slab->returned;
  slab->returned = slab->free;
  add(slab->returned_count, slab->free_count);
  slab->free = list_end();
  slab->free_count = 0;
}

void check_lists(Span* slab) {
  settle(slab);
  if (slab->free_count != 0) last_of(slab, slab->free, slab->free_count);
  if (slab->returned_count != 0) last_of(slab, slab->returned, slab->returned_count);
}

unsigned count_taken(const Span* slab, const Block* first) {
  unsigned count = 0;
  unsigned most = outstanding(slab);
  for (const Block* block = first; block != nullptr; block = block->next)
    if (RH_UNLIKELY(++count > most)) fail_broken(slab, kTwice);
  return count;
}

void give_back(Span* slab, Block* first, Block* last, unsigned count) {
  last->next = slab->returned;
  slab->returned = first;
  add(slab->returned_count, count);
  add(slab->outstanding, 0u - count);
}

// If a block was freed again while it lay in the bin, its link leads into the list it went into.
void give_back_bin(Span* slab, Block* first) {
  unsigned count = 1;
  Block* last = first;
  for (; last->next != nullptr; last = last->next, ++count)
    if (last == &g_end) fail_broken(slab, kTwice);
  give_back(slab, first, last, count);
}

void clear_uncarved(Span* slab) {
  if (slab->zero) return;
  uintptr_t start = g_realm.address(slab);
  uintptr_t end = start + Units{slab->units}.bytes();
  start += slab->carved.load() * size_t{properties(slab).size};
  uintptr_t page = align_up(start, platform::kPageSize);
  if (page >= end || !platform::replace_by_zeros(page, end - page)) return;
  __builtin_memset(reinterpret_cast<void*>(start), 0, page - start);
  slab->zero = true;
}

void recount(Span* slab) {
  settle(slab);
  uint16_t linked = 0;
  for (Block* block = slab->free; block != &g_end; block = block->next) ++linked;
  add(slab->outstanding, 0u + slab->free_count - linked);
  slab->free_count = linked;
}

}  // namespace rh::slab
