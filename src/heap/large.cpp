#include "heap/large.h"

#include "arena/bars.h"
#include "arena/growth.h"
#include "heap/accounts.h"
#include "heap/spans.h"
#include "platform/pages.h"

namespace rh::large {

namespace {

// From here on moving pages is cheaper than copying them: what is moved leaves cold memory behind, each page of which
// costs a fault when it is used again.
constexpr size_t kLeastMove = size_t{4} << 20;

// Each move may cost the process a memory mapping, and those are limited (65,530 by default): after this many only
// blocks twice as large are moved, and so on.
constexpr size_t kMovesPerDoubling = 1024;

// Up to here copying takes less time than the faults that it saves.
constexpr size_t kMostCopied = size_t{1} << 20;

// Old memory of this much and more is replaced by the OS's zero pages instead of being cleared: a block that large is
// seldom written whole at once.
constexpr size_t kLeastReplaced = size_t{4} << 20;

// Longer blocks are whole pages, also where those are longer than units: pages can be moved, or taken from them.
constexpr size_t kMostInParts = size_t{1} << 20;

// So are those of who asks for pages, and may change what they are.
Units units_for(size_t size, size_t alignment = 1) {
  const bool whole = size > kMostInParts || alignment >= commit_grain();
  return Units::holding(align_up(size == 0 ? 1 : size, whole ? commit_grain() : 1));
}

Units alignment_for(size_t size, size_t alignment) {
  const Units wanted = Units::holding(alignment), page = units_of_page();
  return size > kMostInParts && wanted < page ? page : wanted;
}

uintptr_t first_byte_of(const Span* span) { return g_realm.address(span); }
uintptr_t end_byte_of(const Span* span) { return first_byte_of(span) + Units{span->units}.bytes(); }

constinit std::atomic<size_t> g_moves{0};

bool worth_moving(size_t bytes) {
  size_t doublings = g_moves.load(std::memory_order_relaxed) / kMovesPerDoubling;
  return doublings < 16 && bytes >> doublings >= kLeastMove;
}

// From a unit inside a block back to its head. The descriptors in between are not touched, but for a few marks: the run
// of units from the first multiple of 64 on is cut into the largest pieces that are a power of two long and begin at a
// multiple of their length, at most two of each length, and the first unit of each is marked. So the piece that a unit
// lies in begins where rounding its number down to some power of two leads.
constexpr size_t kStep = 64;

size_t index_of(const Span* span) { return static_cast<size_t>(span - g_realm.first()); }

template <typename Visit> void each_mark(Span* span, Visit visit) {
  size_t head = index_of(span), end = head + span->units;
  size_t pieces_end = align_up(end, kStep);
  for (size_t at = align_up(head + 1, kStep), length = 0; at < end; at += length) {
    length = at & -at;
    while (at + length > pieces_end) length /= 2;
    visit(g_realm.first() + at);
  }
}

void mark(Span* span) {
  each_mark(span, [span](Span* unit) {
    unit->units = static_cast<uint32_t>(unit - span);
    unit->kind.store(SpanKind::inside);
  });
}

void unmark(Span* span) {
  each_mark(span, [](Span* unit) { unit->kind.store(SpanKind::none); });
}

// False when the OS refuses: nothing may lie there again. Of a page that it shares nobody was to change anything.
bool make_plain(const Span* span) {
  if (!span->altered) return true;
  const platform::Pages pages = platform::pages_within(first_byte_of(span), end_byte_of(span));
  return pages.empty() || (platform::renew(pages.start, pages.size()) && platform::commit(pages.start, pages.size()));
}

// An allocated span, no block any longer, goes back to where it came from.
void give_back(Span* span, Heap* home) {
  if (!make_plain(span)) return;
  ThreadToken token = platform::thread_token();
  span->owner.store(nullptr);
  if (home == nullptr) return g_arena.free(span, token);
  if (home != own_heap_if_any()) return spans::give_from_afar(home, span, token);
  LockGuard guard(home->lock, token);
  if (!inconsistent()) spans::give(home, span, spans::Use::block, token);
}

// From a unit of the span on, but for its end, where the next guard is. False when an earlier one cannot be removed:
// then no block may lie there, now or later.
bool make_accessible(Span* span, Units from = {}) {
  return !kHardened || bars::open(span + from.count, span + span->units - 1);
}

void begin(Span* span, size_t size, Heap* owner) {
  span->owner.store(owner);
  span->requested = size;
  span->altered = false;
  mark(span);
  span->kind.store(SpanKind::large);
}

void end(Span* span) {
  span->kind.store(SpanKind::none);
  unmark(span);
}

// The first span of those that the arena gives that can be written to.
template <typename Take> Span* allocate_open(size_t size, Take take) {
  Span* span = nullptr;
  do {
    span = take();
  } while (span != nullptr && !make_accessible(span));
  if (span != nullptr) begin(span, size, kNobody);
  return span;
}

// The heap from whose store the span came; null when it came from the arena.
Heap* home_of(const Span* span) { return without_notes(span->owner.load()); }

}  // namespace

Span* allocate(size_t size, size_t alignment, Prefer prefer, Partition partition) {
  const Units units = units_for(size, alignment), aligned = alignment_for(size, alignment);
  return allocate_open(size, [=] { return g_arena.allocate(units, aligned, prefer, nullptr, partition); });
}

Span* allocate_from(Heap* home, size_t size, ThreadToken token) {
  auto open = [](Span* taken) { return make_accessible(taken); };
  Span* span = spans::take_open(home, Units::holding(size == 0 ? 1 : size), spans::Use::block, token, open);
  if (span == nullptr) return nullptr;
  if (home->shared) home->large.push_back(span);
  begin(span, size, with_note(home, home->shared ? kListed : kFromStore));
  return span;
}

void free(Span* span) {
  Heap* home = home_of(span);
  end(span);
  give_back(span, home);
}

void free_listed(Heap* owner, Span* span, ThreadToken token) {
  owner->large.remove(span);
  end(span);
  if (!make_plain(span)) return accounts::discharge(owner, Units{span->units});
  span->owner.store(nullptr);
  spans::give(owner, span, spans::Use::block, token);
}

void note_altered(const void* pages, size_t size) {
  uintptr_t end = address_of(pages) + size;
  for (const void* at = pages; address_of(at) < end && g_realm.holds(at);) {
    Span* span = head_of(g_realm.span_of(at));
    if (span == nullptr) return;
    span->altered = true;
    at = reinterpret_cast<void*>(g_realm.address(span) + Units{span->units}.bytes());
  }
}

Span* head_of(Span* unit) {
  auto unused = [](const Span* span) { return span->kind.load() == SpanKind::none; };
  size_t index = index_of(unit);
  Span* head = unit;
  for (size_t steps = 1; steps < kStep && head != g_realm.first() && unused(head); ++steps) --head;
  for (size_t length = kStep; unused(head) && length <= index; length *= 2)
    head = g_realm.first() + align_down(index, length);
  if (head->kind.load() == SpanKind::inside) head -= head->units;
  return head->kind.load() == SpanKind::large && unit < head + head->units ? head : nullptr;
}

void clear(Span* span, size_t size) {
  if (span->zero) return;
  if (size >= kLeastReplaced && platform::make_zero(first_byte_of(span), end_byte_of(span))) return;
  __builtin_memset(reinterpret_cast<void*>(first_byte_of(span)), 0, size);
}

Prefer preferred_for_zero(size_t size) { return size >= kLeastReplaced ? Prefer::zero : Prefer::warm; }

// What was taken ahead follows in the store.
static bool lengthen_from_store(Span* span, Units to) {
  Heap* home = home_of(span);
  if (home == nullptr || !(home->shared || home == own_heap_if_any())) return false;
  LockGuard guard(home->lock);
  return !inconsistent() && home->store.lengthen(span, to, home);
}

static bool lengthen(Span* span, Units to) { return lengthen_from_store(span, to) || g_arena.lengthen(span, to); }

// The heap that lists it has its account changed with it.
static bool lengthen_charged(Span* span, Units from, Units to) {
  Heap* owner = has_owner(span) ? lister_of(span) : nullptr;
  if (owner == nullptr) return lengthen(span, to);
  if (!accounts::charge(owner, to - from)) return false;
  if (lengthen(span, to)) return true;
  accounts::discharge(owner, to - from);
  return false;
}

static void give_back_rest(Span* span, Span* rest) {
  rest->altered = span->altered;
  if (!has_owner(span)) return give_back(rest, home_of(span));
  accounts::discharge(lister_of(span), Units{rest->units});
  give_back(rest, nullptr);
}

Resized resize_in_place(Span* span, size_t size, Fit fit) {
  if (!is_possible(size) || (fit == Fit::close && size <= kMaxSmall)) return Resized::no;
  Units wanted = units_for(size);
  Units present{span->units};
  // What is left of a page that somebody changed is of no use.
  if (span->altered && wanted < present && units_of_page() > Units{1}) wanted = present;
  Resized resized = Resized::done;
  if (wanted != present) {
    unmark(span);
    bool can = wanted < present || lengthen_charged(span, present, wanted);
    if (can && wanted > present && !make_accessible(span, present - Units{1})) {
      can = false;
      wanted = present;
    }
    Span* rest = wanted < Units{span->units} ? g_arena.cut(span, wanted) : nullptr;
    mark(span);
    if (rest != nullptr) give_back_rest(span, rest);
    if (!can) return Resized::no;
    if (rest != nullptr) resized = Resized::memory_freed;
  }
  span->requested = size;
  return resized;
}

// Where buffers are filled and then cut, one after the other, each would leave its rest too short for the next, which
// is as long as it was itself. A limit may leave no room for both.
bool is_better_copied(const Span* span, size_t size) {
  const bool is_cut_short = size > kMaxSmall && size <= kMostCopied && size < Units{span->units}.bytes() / 2;
  return is_cut_short && !has_owner(span) && !span->altered && !g_arena.is_limited();
}

bool may_move(const Span* span, size_t size) {
  size_t present = Units{span->units}.bytes();
  return size > present && worth_moving(present) && !span->altered &&
         platform::is_whole_pages(first_byte_of(span), end_byte_of(span));
}

// Where a limit counts what is moved once, it goes back as what it is: empty.
static void free_empty(Span* span, Units lent) {
  if (lent == Units{}) return free(span);
  end(span);
  platform::Purged purged = platform::purge(g_realm.address(span), Units{span->units}.bytes());
  g_arena.return_empty(span, purged, lent, platform::thread_token());
}

void free_uncommitted(Span* span) {
  end(span);
  g_arena.return_empty(span, platform::Purged::uncommitted, Units{}, platform::thread_token());
}

Span* allocate_to_move(const Span* span, size_t size, Units* lent) {
  *lent = {};
  return allocate_open(size, [=] {
    if (*lent > Units{}) g_arena.end_loan(*lent, platform::thread_token());  // for one that cannot be opened
    *lent = home_of(span) == nullptr ? Units{span->units} : Units{};
    return g_arena.allocate(units_for(size), units_of_page(), Prefer::zero, lent);
  });
}

bool move(Span* span, Span* target, Units lent) {
  platform::Moved moved =
      platform::move_pages(g_realm.address(span), g_realm.address(target), Units{span->units}.bytes());
  if (moved != platform::Moved::done) {
    // What was lost stays in use for ever: nothing is to be handed out there.
    if (moved == platform::Moved::refused)
      free_empty(target, lent);
    else if (lent > Units{})
      g_arena.end_loan(lent, platform::thread_token());
    return false;
  }
  g_moves.fetch_add(1, std::memory_order_relaxed);
  free_empty(span, lent);
  return true;
}

}  // namespace rh::large
