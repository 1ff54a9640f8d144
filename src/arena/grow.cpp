// How the arena finds what is wanted, and where there is none makes more memory usable: fresh from the realm, or
// decommitted before. The OS is asked with the lock released, by one thread at a time; who needs memory meanwhile and
// finds none free waits for it, so nobody is refused what is on its way.
#include "arena/arena.h"
#include "arena/bars.h"

namespace rh {

namespace {

bool is_decommitted(const Span* span) { return span->kind.load() == SpanKind::free_decommitted; }

// Whether a free span of that kind counts as held before anyone takes it.
bool is_held(SpanKind kind) {
  return kind == SpanKind::free_dirty || (platform::kChargesUntouched && kind == SpanKind::free_clean);
}

// Whether there are `units` from a multiple of `alignment` on.
bool holds(const Span* span, Units units, Units alignment) {
  uintptr_t start = g_realm.address(span);
  Units before{(align_up(start, alignment.bytes()) - start) >> kUnitShift};
  return !(before + units > Units{span->units});
}

}  // namespace

// The caller holds the lock, which may be released meanwhile. A span out of the sets, trimmed to size and in use.
Span* Arena::take(Units units, Units alignment, Prefer prefer, Partition partition, ThreadToken token, Units lent) {
  Units room = units + alignment - Units{1};
  if (room < units) return nullptr;
  Span *span = nullptr, *refused = nullptr;
  for (bool tried = false, joins = true;;) {
    if (inconsistent()) return take_fresh(units, alignment, partition);
    span = find(units, alignment, room, prefer, partition);
    bool held = span != nullptr && is_held(span->kind.load());
    Units need = platform::kChargesUntouched ? room : units - lent;
    if (span == nullptr) need += tables_for(room);
    if (!admits(held ? Units{} : need)) {
      if (prefer == Prefer::any) return refuse();
      // What is held already will do, wherever it lies.
      prefer = Prefer::any;
      continue;
    }
    if (held) break;
    if (span != nullptr && !is_decommitted(span)) break;
    if (wait_for_growth(token)) continue;
    if (joins) {
      joins = false;
      if (commit_behind_warm(units, alignment, prefer, partition, token)) continue;
    }
    // Others may have freed or purged some while the OS refused.
    if (tried && span == refused) {
      if (prefer == Prefer::any) return nullptr;
      prefer = Prefer::any;
      continue;
    }
    refused = span;
    tried = true;
    span = obtain(span, room, prefer, partition, token);
    // Others may have come to the limit meanwhile.
    if (span == nullptr || inconsistent() || !(is_held(span->kind.load()) || admits(units - lent))) continue;
    if (Span* warm = lengthen_warm(units, alignment, prefer, partition)) span = warm;
    break;
  }
  bool dirty = span->kind.load() == SpanKind::free_dirty;
  remove(span);
  // Whoever touches its pages first has them from his node.
  if (!dirty) span->node = static_cast<uint8_t>(platform::node()) % platform::kMostNodes;
  spans_taken_.add(1);
  note_in_use(in_use_ + units);
  return carve(span, units, alignment);
}

// Memory that nobody used before: all that is sure when what the lock guards is not.
Span* Arena::take_fresh(Units units, Units alignment, Partition partition) {
  Units room = units + alignment - Units{1}, got;
  if (room < units) return nullptr;
  Span* span = g_realm.extend(room, room, &got);
  if (span == nullptr) return nullptr;
  give_to(partition, span, got);
  uintptr_t start = g_realm.address(span);
  span += (align_up(start, alignment.bytes()) - start) >> kUnitShift;
  span->units = static_cast<uint32_t>(units.count);
  span->zero = true;
  return span;
}

// What had the same size and alignment before leaves a hole that just fits; `room` fits wherever it lies.
Span* Arena::find(Units units, Units alignment, Units room, Prefer prefer, Partition partition) {
  Span* span = find_fit(units, prefer, partition);
  if (span == nullptr || span->kind.load() != SpanKind::free_dirty)
    if (Span* warm = lengthen_warm(units, alignment, prefer, partition)) return warm;
  if (span != nullptr && !holds(span, units, alignment)) span = find_fit(room, prefer, partition);
  if (span == nullptr && in_pieces_) {
    rejoin();
    span = find_fit(room, prefer, partition);
  }
  return span;
}

Span* Arena::find_fit(Units units, Prefer prefer, Partition partition) {
  Span* span = prefer == Prefer::zero ? nullptr : find_warm(units, partition, prefer);
  if (span == nullptr) span = clean_.of(partition).best_fit(units);
  if (span == nullptr) span = decommitted_.of(partition).best_fit(units);
  return span == nullptr && prefer == Prefer::zero ? find_warm(units, partition) : span;
}

// What other nodes' threads have touched is far away: it is taken where fresh pages would raise the peak.
Span* Arena::find_warm(Units units, Partition partition, Prefer prefer) const {
  unsigned node = platform::node();
  const NodeSets& dirty = dirty_.of(partition);
  Span* span = dirty.of(node).best_fit(units);
  bool near_only = prefer != Prefer::any && in_use_ + dirty_.total() + units < most_held();
  return span != nullptr || near_only ? span : dirty.best_fit_elsewhere(units, node);
}

// A clean span of at least `least`, made of a decommitted one, as much of it as there is, or else of fresh memory. Null
// when the OS refuses, or when a signal handler interrupted its own thread in here.
Span* Arena::obtain(Span* decommitted, Units least, Prefer prefer, Partition partition, ThreadToken token) {
  if (grower_.token.load() != 0) return nullptr;
  if (decommitted != nullptr && least.count > decommitted->units) least = Units{decommitted->units};
  grower_.begin(token, __builtin_frame_address(0));
  promised_ = decommitted != nullptr ? Units{} : tables_for(least);
  Span* span = decommitted != nullptr ? commit(decommitted, least, token) : grow(least, prefer, partition, token);
  promised_ = {};
  if (grower_.token.load() == token) grower_.token.store(0);
  return span;
}

// What is free and clean before the frontier: what comes behind becomes one with it.
static Units clean_before_frontier(Partition partition) {
  if (g_realm.count() == 0) return {};
  const Span* last = g_realm.first() + g_realm.count() - 1;
  const Span* head = last->kind.load() == SpanKind::free_tail ? last - last->units : last;
  const bool joins = head->kind.load() == SpanKind::free_clean && partition_of(head) == partition;
  return joins ? Units{head->units} : Units{};
}

// Fresh memory, merged with what is free before it.
Span* Arena::grow(Units least, Prefer prefer, Partition partition, ThreadToken token) {
  if (!g_realm.open()) return nullptr;
  // The next piece will not follow this one: keep what is left of it.
  if (Units room = g_realm.room(); !k64Bit && room > Units{} && room < least && admits(room + least))
    extend(room, room, Prefer::warm, kUntyped, token);
  Units step = growth_step_of(partition);
  bool grown = extend(least, step, prefer, partition, token);
  // Pieces that are free but too short take the room that a longer one would have. But what they leave does not grow by
  // being given back: only where it is enough.
  if (!k64Bit && !grown && !inconsistent() && !is_divided_ && releasable() >= least.bytes()) {
    release_pieces();
    grown = extend(least, step, prefer, partition, token);
  }
  // Where address space is short, only what is missing.
  if (k64Bit && !grown && !inconsistent()) {
    const Units there = clean_before_frontier(partition), missing = there < least ? least - there : Units{};
    grown = there > Units{} && missing > Units{} && extend(missing, missing, prefer, partition, token);
  }
  return grown ? clean_.of(partition).best_fit(least) : nullptr;
}

// The only place where a unit comes to be of a partition. Descriptors of fresh memory read as zero, where it is never
// given back to the OS.
void Arena::give_to(Partition partition, Span* fresh, Units units) {
  if constexpr (kPartitions == 1) return;
  if (k64Bit && partition == kUntyped) return;
  for (size_t index = 0; index < units.count; ++index) fresh[index].others.set_partition(partition);
  fresh_[partition] += units;
  is_divided_ |= partition != kUntyped;
}

static void end_wish(Stretches::Range young) {
  if (!young.empty()) platform::prefer_small(young.start, young.end - young.start);
}

void Arena::end_wish_for_huge(ThreadToken token) {
  Stretches::Range young;
  {
    Guard guard(*this, token);
    young = g_realm.take_young();
  }
  end_wish(young);
}

bool Arena::extend(Units least, Units wanted, Prefer prefer, Partition partition, ThreadToken token) {
  Fresh fresh = limit_ != Limit{} ? Fresh::limited : prefer == Prefer::dense ? Fresh::dense : Fresh::usual;
  const Stretches::Range young = fresh == Fresh::dense ? g_realm.take_young() : Stretches::Range{};
  lock_.release();
  Realm::Growth growth = g_realm.prepare(least, wanted, fresh);
  end_wish(young);  // now, for what follows was one mapping with it, so that it becomes one with what it follows
  lock_.acquire(token);
  Units got;
  Span* span = inconsistent() ? nullptr : g_realm.enter(growth, &got);
  if (span == nullptr) return false;
  give_to(partition, span, got);
  span->units = static_cast<uint32_t>(got.count);
  insert(span, SpanKind::free_clean, 0);
  note_committed();
  return true;
}

// As much as wanted, or as little as will do; 0 when the OS refuses.
static Units commit_memory(uintptr_t start, Units wanted, Units least) {
  if (platform::commit(start, wanted.bytes())) return wanted;
  return wanted > least && platform::commit(start, least.bytes()) ? least : Units{};
}

// Commits the beginning of a decommitted span.
Span* Arena::commit(Span* span, Units least, ThreadToken token) {
  Units length{span->units};
  Units part = growth_step();
  if (part < least) part = least;
  if (part > length) part = length;
  remove(span);
  insert_part(span + part.count, span + length.count, SpanKind::free_decommitted);
  span->units = static_cast<uint32_t>(part.count);
  span->kind.store(SpanKind::busy);
  in_growth_ = span;
  lock_.release();
  Units committed = commit_memory(g_realm.address(span), part, least);
  lock_.acquire(token);
  if (inconsistent() || in_growth_ != span) return nullptr;
  put_committed(span, committed);
  return committed > Units{} ? clean_.of(partition_of(span)).best_fit(least) : nullptr;
}

// What was to be committed is free again, the beginning of it clean.
void Arena::put_committed(Span* span, Units committed) {
  Span *behind = span + committed.count, *end = span + span->units;
  if constexpr (kHardened) bars::forget(span, behind);
  span->kind.store(SpanKind::none);
  insert_part(span, behind, SpanKind::free_clean);
  insert_part(behind, end, SpanKind::free_decommitted);
  in_growth_ = nullptr;
  note_committed();
}

// The caller holds the lock. False when no other thread is making memory usable; else it may have come to its end.
bool Arena::wait_for_growth(ThreadToken token) {
  ThreadToken grower = grower_.token.load();
  if (grower == 0 || inconsistent()) return false;
  if (grower == token) {
    if (!is_lost(grower_, token)) return false;
    take_from_grower();
    return true;
  }
  constexpr unsigned kAskAfter = 128;
  lock_.release();
  for (unsigned attempt = 0; grower_.token.load() == grower && attempt < kAskAfter; ++attempt) {
    if (grower == kForkToken || platform::others_are_gone()) break;
    platform::back_off(attempt);
  }
  bool lost = grower_.token.load() == grower && is_lost(grower_, token);
  lock_.acquire(token);
  if (lost && grower_.token.load() == grower) take_from_grower();
  return true;
}

// What it had in hand is committed again before use, whether it was or not.
void Arena::take_from_grower() {
  if (in_growth_ != nullptr && !inconsistent()) put_committed(in_growth_, {});
  promised_ = {};
  grower_.token.store(0);
}

bool Arena::lengthen(Span* span, Units to) {
  ThreadToken token = platform::thread_token();
  size_t refusals = refusals_.value();
  if (lengthen_once(span, to, token)) return true;
  bool limited = refusals_.value() != refusals;
  return limited && make_room(to - Units{span->units}, token) && lengthen_once(span, to, token);
}

bool Arena::lengthen_once(Span* span, Units to, ThreadToken token) {
  Guard guard(*this, token);
  Units more = to - Units{span->units};
  Span* next = span + span->units;
  for (;;) {
    if (inconsistent()) return false;
    // The span, or what is free and clean behind it, may end where the realm does: fresh memory would follow.
    bool at_end = !g_realm.contains(next);
    SpanKind kind = at_end ? SpanKind::free_clean : next->kind.load();
    if (!is_free(kind) || (!at_end && partition_of(next) != partition_of(span))) return false;
    Units there = at_end ? Units{} : Units{next->units};
    bool enough = !(there < more);
    Units tables = enough ? Units{} : tables_for(more - there);
    if (!admits(enough && is_held(kind) ? Units{} : more + tables)) return refuse() != nullptr;
    if (!enough && (kind != SpanKind::free_clean || g_realm.contains(next + there.count))) return false;
    if (enough && kind != SpanKind::free_decommitted) break;
    if (wait_for_growth(token)) continue;
    Units missing = enough ? more : more - there;
    if (obtain(enough ? next : nullptr, missing, Prefer::warm, partition_of(span), token) == nullptr) return false;
  }
  remove(next);
  carve(next, more, {1});
  span->zero = next->zero;
  span->units = static_cast<uint32_t>(to.count);
  note_in_use(in_use_ + more);
  note_dirty();
  note_held();
  return true;
}

}  // namespace rh
