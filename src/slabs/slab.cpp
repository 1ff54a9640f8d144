#include "slabs/slab.h"

#include "platform/report.h"

namespace rh::slab {

constinit Block g_end{&g_end};

void start(Span* span, SizeClass size_class, Heap* owner) {
  span->free = &g_end;
  span->returned = nullptr;
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
  }
  slab->owner.store(nullptr);
}

namespace {

void add(Word<uint16_t>& word, unsigned amount) {
  word.store(static_cast<uint16_t>(word.load() + amount));
}

void add(uint16_t& word, unsigned amount) { word = static_cast<uint16_t>(word + amount); }

// Moves the local frees that came since the last arming into free_count.
void settle(Span* slab) {
  uint16_t left = slab->countdown.load();
  uint16_t freed = static_cast<uint16_t>(slab->armed.load() - left);
  slab->armed.store(left);
  add(slab->free_count, freed);
  add(slab->outstanding, 0u - freed);
}

[[noreturn]] RH_COLD void fail_broken(const Span* slab, const char* what) {
  Text message;
  message << "free " << what << ", seen later: in the slab at ";
  message.hex(g_realm.address(slab)) << " of blocks of ";
  message.decimal(properties(slab).size) << " bytes";
  fatal(message);
}

constexpr const char* kTwice = "of a block that was free already";
constexpr const char* kWithin = "of a pointer into a block";

// Whether the offsets that make up this sum can all be those of blocks.
void check_offsets(const Span* slab, uintptr_t offsets) {
  if (RH_UNLIKELY(offsets % properties(slab).size != 0)) fail_broken(slab, kWithin);
}

// A walk of the local list, member by member or by fours, and the sum of the addresses it came by.
struct Walk {
  Block* block;
  uintptr_t sum = 0;

  void one() {
    sum += address_of(block);
    block = block->next;
  }
  void four() {
    sum += address_of(block);
    block = block->next->next->next->next;
  }
  void thirty_two() {
    four(), four(), four(), four();
    four(), four(), four(), four();
  }
};

// Gives the last of the local list's `count` members. Every block that is freed comes by here once, so each instruction
// counts: of long lists every fourth member is looked at, all are followed.
RH_INLINE Block* last_local(const Span* slab, unsigned count) {
  Walk walk{slab->free};
  unsigned left = count - 1;
  auto eight = [&] {
    walk.one(), walk.one(), walk.one(), walk.one();
    walk.one(), walk.one(), walk.one(), walk.one();
  };
  if (left & 16) eight(), eight();
  if (left & 8) eight();
  if (left & 4) walk.one(), walk.one(), walk.one(), walk.one();
  if (left & 2) walk.one(), walk.one();
  if (left & 1) walk.one();
  left &= ~31u;
  unsigned looked_at = count - left / 4 * 3;
  for (; left != 0; left -= 32) walk.thirty_two();
  // One that was linked twice leads round in a circle; one that others have linked as well, elsewhere.
  Block* last = walk.block;
  if (RH_UNLIKELY(last == &g_end || last->next != &g_end)) fail_broken(slab, kTwice);
  check_offsets(slab, walk.sum + address_of(last) - looked_at * g_realm.address(slab));
  return last;
}

void check_returned(const Span* slab) {
  uintptr_t start = g_realm.address(slab);
  unsigned left = slab->returned_count;
  uintptr_t sum = 0;
  Block* block = slab->returned;
  for (; block != nullptr && left != 0; block = block->next, --left)
    sum += address_of(block) - start;
  if (block != nullptr || left != 0) fail_broken(slab, kTwice);
  check_offsets(slab, sum);
}

Block* block_at(uintptr_t address) { return reinterpret_cast<Block*>(address); }

// What stood there before, in a slab of other blocks, says nothing of these.
void note_free_from(const Span* slab, uintptr_t first, uintptr_t last) {
  if constexpr (!kExactSizes) return;
  for (uintptr_t at = first; at <= last; at += properties(slab).size) note_free(slab, block_at(at));
}

}  // namespace

void arm(Span* slab, unsigned frees) {
  settle(slab);
  slab->armed.store(static_cast<uint16_t>(frees));
  slab->countdown.store_release(static_cast<uint16_t>(frees));
  if (is_left(slab)) slab->owner.store(owner_of(slab));
}

void leave(Span* slab) {
  slab->owner.store(
      reinterpret_cast<Heap*>(reinterpret_cast<uintptr_t>(slab->owner.load()) | kLeft));
}

// Links them in address order.
Taken carve(Span* slab, unsigned most) {
  const size_class::Properties& own = properties(slab);
  unsigned carved = slab->carved.load();
  unsigned count = own.capacity - carved;
  if (count > own.carve) count = own.carve;
  if (count > most) count = most;
  if (count == 0) return {nullptr, false};
  uintptr_t first = g_realm.address(slab) + carved * size_t{own.size};
  uintptr_t last = first + (count - 1) * size_t{own.size};
  for (uintptr_t at = first; at < last; at += own.size)
    block_at(at)->next = block_at(at + own.size);
  block_at(last)->next = nullptr;
  note_free_from(slab, first, last);
  add(slab->carved, count);
  add(slab->outstanding, count);
  return {block_at(first), slab->zero};
}

Taken take(Span* slab) {
  settle(slab);
  if (slab->free != &g_end) {
    Block* blocks = slab->free;
    last_local(slab, slab->free_count)->next = nullptr;
    slab->free = &g_end;
    add(slab->outstanding, slab->free_count);
    slab->free_count = 0;
    return {blocks, false};
  }
  if (Block* blocks = slab->returned) {
    check_returned(slab);
    slab->returned = nullptr;
    add(slab->outstanding, slab->returned_count);
    slab->returned_count = 0;
    return {blocks, false};
  }
  return carve(slab);
}

void check_lists(Span* slab) {
  settle(slab);
  if (slab->free != &g_end) last_local(slab, slab->free_count);
  check_returned(slab);
}

unsigned count_taken(const Span* slab, const Block* first) {
  unsigned count = 0;
  unsigned most = outstanding(slab);
  for (const Block* block = first; block != nullptr; block = block->next) {
    if (RH_UNLIKELY(++count > most)) fail_broken(slab, kTwice);
  }
  return count;
}

void give_back(Span* slab, Block* first, Block* last, unsigned count) {
  last->next = slab->returned;
  slab->returned = first;
  add(slab->returned_count, count);
  add(slab->outstanding, 0u - count);
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
