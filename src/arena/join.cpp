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

// Where no warm span is long enough the longest is lengthened by what is clean beside it: then only that is touched
// for the first time, and what was warm does not stay behind, too short for anyone. Null where less than half would be
// warm.
Span* Arena::lengthen_warm(Units units, Units alignment, Prefer prefer, Partition partition) {
  if (prefer == Prefer::zero || alignment > Units{1}) return nullptr;
  Span* warm = dirty_.of(partition).of(platform::node()).longest();
  if (warm == nullptr || warm->units < units.count / 2 || warm->units >= units.count) return nullptr;
  const Units missing = units - Units{warm->units};
  Span* behind = warm + warm->units;
  Span* before = warm != g_realm.first() ? head_before(warm) : nullptr;
  auto clean = [warm](const Span* span) {
    return span != nullptr && is_alike(span, warm, SpanKind::free_clean) ? Units{span->units} : Units{};
  };
  const Units room = g_realm.contains(behind) ? clean(behind) : Units{};
  const Units from_behind = room < missing ? room : missing, from_before = missing - from_behind;
  if (clean(before) < from_before || !(platform::kChargesUntouched || admits(missing))) return nullptr;
  if (from_before > Units{}) take_for_dirty(before, Units{before->units} - from_before, from_before, warm);
  if (from_behind > Units{}) take_for_dirty(behind, {}, from_behind, warm);
  return find_warm(units, partition);
}

}  // namespace rh
