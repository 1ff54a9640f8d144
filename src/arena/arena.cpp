#include "arena/arena.h"

#include <new>

#include "arena/growth.h"
#include "arena/neighbours.h"
#include "arena/purge.h"
#include "base/check.h"
#include "platform/pages.h"

namespace rh {

constinit Arena g_arena;

namespace {

void set_kind(Span* span, SpanKind kind) { span->kind.store(kind); }

// Where all is refused (pages locked in memory, sandboxes) little is tried for so long.
constexpr uint64_t kRestMs = 5000;

constexpr size_t kNotableDirty = 128 * 1024;

// Stamps are the low bits of the clock: differences are right across its wrap.
bool older_than(const Span* span, uint64_t now, uint64_t age_ms) {
  return static_cast<uint32_t>(now) - span->stamp >= age_ms;
}

}  // namespace

void Arena::check() const {
  if (inconsistent()) return;
  const Span* busy = busy_.load();
  Units all = in_use_ + dirty_.total() + clean_.total() + decommitted_.total();
  if (busy != nullptr) all += Units{busy->units};
  if (in_growth_ != nullptr) all += Units{in_growth_->units};
  RH_CHECK(all.bytes() == g_realm.committed());
  RH_CHECK(in_use_bytes_.value() == in_use_.bytes());
  RH_CHECK(g_realm.is_valid());
  static constinit unsigned calls = 0;
  constexpr unsigned kBetweenWalks = 64;
  if (calls++ % kBetweenWalks != 0) return;
  RH_CHECK(dirty_.is_valid() && clean_.is_valid() && decommitted_.is_valid());
}

Span* Arena::allocate(Units units, Units alignment, Prefer prefer, Units* lent, Partition partition) {
  ThreadToken token = platform::thread_token();
  Units loan;
  if (lent != nullptr) *lent = loan = loan_of(*lent, units);
  Span* span = allocate_once(units, alignment, prefer, partition, token, loan);
  if (span == nullptr && make_room(units - loan, token))
    span = allocate_once(units, alignment, prefer, partition, token, loan);
  return span;
}

// Whether blocks of that alignment, where only they are used, are a small part of the memory that they lie in.
static bool is_sparse(Units units, Units alignment) { return alignment.count >= 16 * units.count; }

Span* Arena::allocate_once(Units units, Units alignment, Prefer prefer, Partition partition, ThreadToken token,
                           Units lent) {
  Span* span = nullptr;
  Units surplus, unneeded;
  {
    Guard guard(*this, token);
    span = take(units, alignment, prefer, partition, token, lent);
    // What is on its way to the OS is free in a moment.
    while (span == nullptr && wait_for_purge(token)) span = take(units, alignment, prefer, partition, token, lent);
    if (span == nullptr || inconsistent()) return span;
    lent_ += lent;
    note_dirty();
    note_held();
    surplus = find_surplus();
    unneeded = unneeded_;
    unneeded_ = {};
  }
  if (is_sparse(units, alignment) && span->zero) g_realm.keep_sparse(g_realm.address(span), units.bytes());
  if (unneeded > Units{}) purge(0, unneeded, token);
  if (surplus > Units{}) return_surplus(surplus, token);
  return span;
}

// Trims a span that is in no set: what lies before the aligned start and what is too much go back. Far alignments leave
// more than anyone would have committed ahead: that is the first to be returned to the OS, when the lock is released.
Span* Arena::carve(Span* span, Units units, Units alignment) {
  constexpr Units kAhead = Units::holding(platform::kMostCommittedAhead);
  SpanKind kind = span->zero ? SpanKind::free_clean : SpanKind::free_dirty;
  uint32_t stamp = span->stamp;
  bool zero = span->zero;
  Span* head = span;
  auto give_back = [&](Span* surplus, Units length) {
    surplus->node = head->node;
    surplus->units = static_cast<uint32_t>(length.count);
    if (kind == SpanKind::free_clean && alignment > kAhead && length > kAhead) {
      unneeded_ += length;
      insert_oldest(surplus, stamp);
    } else {
      insert(surplus, kind, stamp);
    }
  };
  uintptr_t start = g_realm.address(span);
  Units before{(align_up(start, alignment.bytes()) - start) >> kUnitShift};
  Units length = Units{span->units} - before;
  span += before.count;
  // Inserted while its kind keeps neighbours from merging with it.
  if (before > Units{}) give_back(head, before);
  if (length > units) give_back(span + units.count, length - units);
  span->units = static_cast<uint32_t>(units.count);
  span->zero = zero;
  span->node = head->node;
  return span;
}

Span* Arena::cut(Span* span, Units units) {
  Guard guard(*this);
  RH_CHECK(units.count < span->units);
  Span* rest = span + units.count;
  rest->units = span->units - static_cast<uint32_t>(units.count);
  rest->zero = span->zero;
  rest->node = span->node;
  span->units = static_cast<uint32_t>(units.count);
  return rest;
}

void Arena::free(Span* span, ThreadToken token) {
  uint64_t now = platform::now_ms();
  span->owner.store(nullptr);
  Guard guard(*this, token);
  if (inconsistent()) return;
  note_in_use(in_use_ - Units{span->units});
  insert(span, SpanKind::free_dirty, static_cast<uint32_t>(now));
  note_dirty();
}

// What of a span is whole pages, and can go back.
static Units whole_pages(const Span* span) {
  if (units_of_page() == Units{1}) return {span->units};
  const uintptr_t start = g_realm.address(span);
  const platform::Pages pages = platform::pages_within(start, start + Units{span->units}.bytes());
  return pages.empty() ? Units{} : Units{pages.size() >> kUnitShift};
}

// Puts a span into its set, merged with free neighbours of its kind.
void Arena::insert(Span* span, SpanKind kind, uint32_t stamp) {
  span = merge(span, kind, &stamp);
  span->stamp = stamp;
  span->zero = kind != SpanKind::free_dirty;
  set_kind(span, kind);
  if (span->units > 1) {
    Span* tail = span + span->units - 1;
    set_kind(tail, SpanKind::free_tail);
    tail->units = span->units - 1;
  }
  set_of(kind, span).insert(span);
  if (kind != SpanKind::free_dirty) return;
  by_age_.push_back(span);
  in_pages_ += whole_pages(span);
}

// The next that goes back to the OS.
void Arena::insert_oldest(Span* span, uint32_t stamp) {
  insert(span, SpanKind::free_dirty, stamp);
  span = by_age_.last();
  by_age_.remove(span);
  by_age_.push_front(span);
}

// Absorbs the free neighbours of `kind`; they leave their set. The age of the larger part prevails.
Span* Arena::merge(Span* span, SpanKind kind, uint32_t* stamp) {
  Span* after = span + span->units;
  if (g_realm.contains(after) && is_alike(after, span, kind)) {
    remove(after);
    if (after->units > span->units) *stamp = after->stamp;
    span->units += after->units;
  }
  if (span == g_realm.first()) return span;
  Span* before = head_before(span);
  if (!is_alike(before, span, kind)) return span;
  remove(before);
  if (before->units > span->units) *stamp = before->stamp;
  before->units += span->units;
  return before;
}

// Takes a free span out of its set; its descriptors are of kind none again.
void Arena::remove(Span* span) {
  SpanKind kind = kind_of(span);
  RH_CHECK(is_free(kind));
  set_of(kind, span).remove(span);
  if (kind == SpanKind::free_dirty) {
    by_age_.remove(span);
    in_pages_ -= whole_pages(span);
  }
  if (span->units > 1) set_kind(span + span->units - 1, SpanKind::none);
  set_kind(span, SpanKind::none);
}

// Whether who works on something was stopped or terminated in the middle, or left behind by a fork, or has left it by
// other ways than returning.
bool Arena::is_lost(const Worker& worker, ThreadToken token) {
  const ThreadToken at_work = worker.token.load();
  if (at_work == token) return platform::has_left_call(worker.frame);
  return at_work == kForkToken || platform::others_are_gone() || platform::thread_is_gone(at_work);
}

void Arena::take_from_purger() {
  Span* span = busy_.load();
  const uintptr_t start = g_realm.address(span);
  const platform::Pages pages = platform::pages_within(start, start + Units{span->units}.bytes());
  if (pages.empty() || platform::commit(pages.start, pages.size())) {
    put_back_whole();
  } else {
    note_in_use(in_use_ + Units{span->units});  // for ever
    busy_.store(nullptr);
  }
}

// The caller holds the lock. True when another thread's purge of a span came to its end meanwhile.
bool Arena::wait_for_purge(ThreadToken token) {
  Span* busy = busy_.load();
  if (busy == nullptr || inconsistent()) return false;
  constexpr unsigned kAskAfter = 128;
  if (lost_purger(token)) {
    take_from_purger();
    return true;
  }
  if (purger_.token.load() == token) return false;
  lock_.release();
  for (unsigned attempt = 0; busy_.load() == busy && attempt < kAskAfter; ++attempt) platform::back_off(attempt);
  lock_.acquire(token);
  return true;
}

size_t Arena::purge(uint64_t age_ms, Units most, ThreadToken token, unsigned spans) {
  Units returned;
  if (most == kAll) end_wish_for_huge(token);
  Guard guard(*this, token);
  if (age_ms == 0 && most == kAll) {
    while (wait_for_purge(token)) {}
    // Several spans, dirty and clean in turn, may share one page.
    if (units_of_page() > Units{1} && !inconsistent()) rejoin();
  }
  if (!inconsistent() && lost_purger(token)) take_from_purger();
  if (busy_.load() != nullptr || inconsistent()) return 0;  // someone else is at it
  purger_.begin(token, __builtin_frame_address(0));
  uint64_t now = platform::now_ms();
  unsigned patience = now < patient_at_ ? 1 : Purge::kPatience;
  // What is refused counts as just freed.
  for (Units refused; returned < most && refused < dirty_.total() && patience != 0 && spans != 0; --spans) {
    // Read under the lock: what others free meanwhile is not older than that.
    Span* span = oldest(platform::now_ms(), age_ms);
    if (span == nullptr) break;
    busy_.store(take_out(span, most - returned));
    Purge purge(busy_);
    lock_.release();
    purge.run(&patience);
    lock_.acquire(token);
    if (!purge.is_wanted()) break;
    put_back(purge);
    returned += purge.returned();
    refused += purge.refused();
  }
  if (patience == 0 && now >= patient_at_) patient_at_ = now + kRestMs;
  returned_.add(returned.bytes());
  return returned.bytes();
}

static bool is_returned(const Span* span) {
  return kind_of(span) == SpanKind::free_clean || kind_of(span) == SpanKind::free_decommitted;
}

// The free span, its content returned already, that a unit lies in; or null.
static Span* returned_span_of(Span* unit) {
  Span* span = unit;
  while (span != g_realm.first() && kind_of(span) == SpanKind::none) --span;
  if (kind_of(span) == SpanKind::free_tail) span -= span->units;
  return is_returned(span) && unit < span + span->units ? span : nullptr;
}

void Arena::insert_part(Span* first, Span* end, SpanKind kind) {
  if (first == end) return;
  first->units = static_cast<uint32_t>(end - first);
  insert(first, kind, 0);
}

// The first of the free spans that hold the whole of a piece, all of them purged; or null. They are several where what
// was committed ahead and never used lies beside what was decommitted.
static Span* free_piece(size_t index, Span** piece, Units* length) {
  *piece = g_realm.piece(index, length);
  Span* first = *piece != nullptr ? returned_span_of(*piece) : nullptr;
  if (first == nullptr) return nullptr;
  Span* span = first;
  while (span < *piece + length->count && is_returned(span)) span += span->units;
  return span >= *piece + length->count ? first : nullptr;
}

size_t Arena::releasable() const {
  size_t bytes = 0;
  Span* piece = nullptr;
  Units length;
  for (size_t index = 0; index < g_realm.pieces(); ++index)
    if (free_piece(index, &piece, &length) != nullptr) bytes += length.bytes();
  return bytes;
}

void Arena::release_pieces() {
  Span* piece = nullptr;
  Units length;
  for (size_t index = 0; index < g_realm.pieces(); ++index) {
    Span* span = free_piece(index, &piece, &length);
    if (span == nullptr) continue;
    Span* const after = piece + length.count;
    for (Span* next; span < after; span = next) {
      const SpanKind kind = kind_of(span);
      next = span + span->units;
      remove(span);
      if (span < piece) insert_part(span, piece, kind);
      if (next > after) insert_part(after, next, kind);
    }
    g_realm.release_piece(index);
  }
  note_committed();
}

void Arena::return_address_space(ThreadToken token) {
  // What the OS gives again may be another partition's.
  if (k64Bit || is_divided_) return;
  Guard guard(*this, token);
  while (wait_for_growth(token)) {}
  if (!inconsistent()) release_pieces();
}

// Takes a free span, or as much of its end as is wanted, out of its set. Not a little of a long one at a time.
Span* Arena::take_out(Span* span, Units most) {
  constexpr Units kLeast = Units::holding(1 << 20);
  if (most < kLeast) most = kLeast;
  uint32_t stamp = span->stamp;
  remove(span);
  if (span->units > most.count) {
    Span* rest = span;
    Units kept = Units{span->units} - most;
    span += kept.count;
    span->units = static_cast<uint32_t>(most.count);
    span->node = rest->node;
    rest->units = static_cast<uint32_t>(kept.count);
    // It is no younger than it was.
    insert_oldest(rest, stamp);
  }
  if (units_of_page() > Units{1}) span = widen(span);
  span->kind.store(SpanKind::busy);
  return span;
}

// Where pages are longer than units they go back whole: with a span that is in no set goes what is clean of its first
// page and its last, if that makes them whole.
Span* Arena::widen(Span* span) {
  const size_t page = platform::page_size();
  const uintptr_t start = g_realm.address(span), end = start + Units{span->units}.bytes();
  const size_t before = (start - align_down(start, page)) >> kUnitShift;
  const size_t behind = (align_up(end, page) - end) >> kUnitShift;
  Span* next = span + span->units;
  Span* head = before != 0 && span != g_realm.first() ? head_before(span) : nullptr;
  Span* tail = behind != 0 && g_realm.contains(next) ? next : nullptr;
  auto has = [span](const Span* clean, size_t units) {
    return clean != nullptr && is_alike(clean, span, SpanKind::free_clean) && clean->units >= units;
  };
  const bool first_is_whole = before == 0 || has(head, before), last_is_whole = behind == 0 || has(tail, behind);
  const bool in_one_page = align_down(start, page) == align_down(end - 1, page);
  if (in_one_page && !(first_is_whole && last_is_whole)) return span;
  if (behind != 0 && last_is_whole) {
    Span* behind_tail = tail + tail->units;
    remove(tail);
    insert_part(tail + behind, behind_tail, SpanKind::free_clean);
    span->units += static_cast<uint32_t>(behind);
  }
  if (before == 0 || !first_is_whole) return span;
  remove(head);
  Span* first = span - before;
  insert_part(head, first, SpanKind::free_clean);
  first->node = span->node;
  first->units = span->units + static_cast<uint32_t>(before);
  return first;
}

// The busy span is free again, in plain spans: nothing tells of the purge where they become one with their neighbours.
void Arena::put_back(const Purge& purge) {
  Span* span = busy_.load();
  uint32_t now = static_cast<uint32_t>(platform::now_ms());
  set_kind(span, SpanKind::none);
  purge.each_part([this, span, now](Units offset, Units length, SpanKind kind) {
    Span* part = span + offset.count;
    part->node = span->node;
    part->units = static_cast<uint32_t>(length.count);
    insert(part, kind, now);
  });
  busy_.store(nullptr);
  if (purge.returned() > Units{} && purge.refused() > Units{}) in_pieces_ = true;
  note_dirty();
  note_committed();
  note_held();
}

// Nobody knows how much of it was returned.
void Arena::put_back_whole() { put_back(Purge(busy_)); }

void Arena::after_fork_in_child() {
  ThreadToken token = platform::thread_token();
  ThreadToken grower = grower_.token.load();
  lent_ = {};
  bool lost_growth = grower != 0 && grower != token;
  if (lost_growth) g_realm.forget_growth();
  if (lock_.held_by(token)) {
    if (lost_growth) grower_.token.store(kForkToken);
    if (busy_.load() != nullptr && purger_.token.load() != token) purger_.token.store(kForkToken);
    return;
  }
  if (lost_growth) take_from_grower();
  if (busy_.load() != nullptr) put_back_whole();
}

// What is free belongs to nobody from here on.
static void forget_free_spans() {
  g_realm.each_span([](Span* span) {
    SpanKind kind = kind_of(span);
    bool in_arena = is_free(kind) || kind == SpanKind::free_tail || kind == SpanKind::busy;
    if (in_arena) set_kind(span, SpanKind::none);
  });
}

void Arena::give_up_free() {
  forget_free_spans();
  dirty_ = {};
  clean_ = decommitted_ = {};
  by_age_ = {};
  in_pages_ = {};
  busy_.store(nullptr);
  in_growth_ = nullptr;
  note_in_use(Units::holding(g_realm.committed()));
  note_committed();
  note_dirty();
}

void Arena::start_over(ThreadToken token) {
  const bool growing = is_growing(token);
  const void* frame = grower_.frame;
  bool divided = is_divided_;
  Limit limit = limit_;
  const size_t near_held = near_.value();
  forget_free_spans();
  new (this) Arena;
  near_.set(near_held);
  set_limit(limit);
  is_divided_ = divided;
  watched_above_ = 0;  // whoever set it sees to it again
  if (growing) grower_.begin(token, frame);
  note_in_use(Units::holding(g_realm.committed()));
  note_committed();
}

// The list is in order of insertion, and merging may have put an old stamp behind a new one: that only makes the
// old memory wait for the new.
Span* Arena::oldest(uint64_t now, uint64_t age_ms) const {
  Span* span = by_age_.first();
  return span != nullptr && older_than(span, now, age_ms) ? span : nullptr;
}

void Arena::note_in_use(Units units) {
  in_use_ = units;
  in_use_bytes_.set(units.bytes());
  if (units.bytes() > in_use_peak_.value()) in_use_peak_.set(units.bytes());
}

SpanSet& Arena::set_of(SpanKind kind, const Span* span) {
  Partition partition = partition_of(span);
  if (kind == SpanKind::free_dirty) return dirty_.of(partition).of(span->node);
  return (kind == SpanKind::free_clean ? clean_ : decommitted_).of(partition);
}

void Arena::note_committed() {
  size_t committed = g_realm.committed() - decommitted_.total().bytes();
  if (in_growth_ != nullptr) committed -= Units{in_growth_->units}.bytes();
  committed_.set(committed);
  if (committed > committed_peak_.value()) committed_peak_.set(committed);
}

// All who free read it: so it is told to them when it has moved by an eighth, and not a little at that.
void Arena::note_dirty() {
  size_t dirty = in_pages_.bytes(), told = dirty_told_.value();
  dirty_bytes_.set(dirty_.total().bytes());
  size_t moved = dirty > told ? dirty - told : told - dirty;
  if (moved > told / 8 && moved >= kNotableDirty) dirty_told_.set(dirty);
}

Arena::Figures Arena::figures() const {
  return {in_use_bytes_.value(), in_use_peak_.value(), dirty_bytes_.value(),   returned_.value(),
          spans_taken_.value(),  committed_.value(),   committed_peak_.value()};
}

}  // namespace rh
