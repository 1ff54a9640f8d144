// Free spans that lie side by side, and are not of one kind.
#include "arena/arena.h"
#include "arena/neighbours.h"

namespace rh {

// From now on a part of a clean span, which lies beside a dirty one, counts as dirty and is one with that.
void Arena::take_for_dirty(Span* clean, Units offset, Units length, const Span* dirty) {
  Span *part = clean + offset.count, *rest = part + length.count, *end = clean + clean->units;
  remove(clean);
  insert_part(clean, part, SpanKind::free_clean);
  insert_part(rest, end, SpanKind::free_clean);
  part->node = dirty->node;
  part->units = static_cast<uint32_t>(length.count);
  insert(part, SpanKind::free_dirty, dirty->stamp);
}

// Makes a clean neighbour of a dirty span dirty, and thereby one with it, where that may count as held.
bool Arena::absorb(Span* neighbour, const Span* dirty) {
  if (!g_realm.contains(neighbour) || !is_alike(neighbour, dirty, SpanKind::free_clean)) return false;
  if (!platform::kChargesUntouched && !admits(Units{neighbour->units})) {
    in_pieces_ = true;
    return false;
  }
  take_for_dirty(neighbour, {}, Units{neighbour->units}, dirty);
  return true;
}

// What went back around pages that did not is in pieces. Where none of these is long enough they are one again, as they
// were before.
void Arena::rejoin() {
  in_pieces_ = false;
  size_t count = 0;
  for (Span* span = by_age_.first(); span != nullptr; span = span->next) ++count;
  for (; count != 0; --count) {
    Span* span = by_age_.pop_front();
    by_age_.push_back(span);
    while (absorb(span + span->units, span)) {}
    while (span != g_realm.first() && absorb(head_before(span), span)) span = by_age_.last();
  }
  note_dirty();
}

// The longest warm span, where it is too short and half of what is wanted or more: less would save little.
Span* Arena::worth_lengthening(Units units, Units alignment, Prefer prefer, Partition partition) const {
  if (prefer == Prefer::zero || alignment > Units{1}) return nullptr;
  Span* warm = dirty_.of(partition).of(platform::node()).longest();
  return warm != nullptr && warm->units >= units.count / 2 && warm->units < units.count ? warm : nullptr;
}

// What lies behind a span, if it is free and of that kind, and can be one with it.
static Span* behind_if(SpanKind kind, Span* span) {
  Span* behind = span + span->units;
  return g_realm.contains(behind) && is_alike(behind, span, kind) ? behind : nullptr;
}

// Where no warm span is long enough the longest is lengthened by what is clean beside it: then only that is touched
// for the first time, and what was warm does not stay behind, too short for anyone. Null where there is none.
Span* Arena::lengthen_warm(Units units, Units alignment, Prefer prefer, Partition partition) {
  Span* warm = worth_lengthening(units, alignment, prefer, partition);
  if (warm == nullptr) return nullptr;
  const Units missing = units - Units{warm->units};
  auto length = [](const Span* span) { return span != nullptr ? Units{span->units} : Units{}; };
  Span* behind = behind_if(SpanKind::free_clean, warm);
  Span* before = warm != g_realm.first() ? head_before(warm) : nullptr;
  if (before != nullptr && !is_alike(before, warm, SpanKind::free_clean)) before = nullptr;
  const Units from_behind = length(behind) < missing ? length(behind) : missing, from_before = missing - from_behind;
  if (length(before) < from_before || !(platform::kChargesUntouched || admits(missing))) return nullptr;
  if (from_before > Units{}) take_for_dirty(before, Units{before->units} - from_before, from_before, warm);
  if (from_behind > Units{}) take_for_dirty(behind, {}, from_behind, warm);
  return find_warm(units, partition);
}

// Where what would lengthen it is decommitted that is made usable first, so that lengthen_warm finds it. False, and
// nothing done, where there is none, or the OS refuses.
bool Arena::commit_behind_warm(Units units, Units alignment, Prefer prefer, Partition partition, ThreadToken token) {
  Span* warm = worth_lengthening(units, alignment, prefer, partition);
  if (warm == nullptr) return false;
  Units missing = units - Units{warm->units};
  Span* last = warm;
  if (Span* clean = behind_if(SpanKind::free_clean, warm); clean != nullptr && Units{clean->units} < missing) {
    missing -= Units{clean->units};
    last = clean;
  }
  Span* decommitted = behind_if(SpanKind::free_decommitted, last);
  if (decommitted == nullptr || Units{decommitted->units} < missing) return false;
  return obtain(decommitted, missing, prefer, partition, token) != nullptr;
}

}  // namespace rh
