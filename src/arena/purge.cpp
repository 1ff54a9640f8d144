#include "arena/purge.h"

#include "arena/growth.h"
#include "arena/realm.h"
#include "platform/pages.h"

namespace rh {

SpanKind kind_after(platform::Purged purged) {
  switch (purged) {
  case platform::Purged::zero: return SpanKind::free_clean;
  case platform::Purged::uncommitted: return SpanKind::free_decommitted;
  default: return SpanKind::free_dirty;
  }
}

Purge::Purge(const Word<Span*>& busy) : busy_(busy), span_(busy.load()), length_{span_->units} {
  const uintptr_t start = g_realm.address(span_), end = start + length_.bytes();
  const platform::Pages pages = platform::pages_within(start, end);
  has_pages_ = !pages.empty();
  if (!has_pages_) {
    kept_[kept_count_++] = {{}, length_};
    return;
  }
  auto keep = [&](uintptr_t from, uintptr_t to) {
    if (from != to) kept_[kept_count_++] = {Units{(from - start) >> kUnitShift}, Units{(to - from) >> kUnitShift}};
  };
  keep(pages.start, pages.end);
  keep(start, pages.start);
  keep(pages.end, end);
}

bool Purge::give_back(Part part, unsigned* patience) {
  if (!is_wanted()) return false;
  uintptr_t start = g_realm.address(span_) + part.offset.bytes();
  SpanKind kind = kind_after(platform::purge(start, part.length.bytes()));
  if (kind == SpanKind::free_dirty) {
    *patience -= *patience > 0;
    return false;
  }
  kind_ = kind;
  *patience = kPatience;
  return true;
}

// A part that was refused becomes that half of it which is, or both.
bool Purge::halve(Part* part, unsigned* patience) {
  const size_t page = units_of_page().count, pages = part->length.count / page;
  if (pages < 2 || kept_count_ == kMostKept) return false;
  Part first = {part->offset, {pages / 2 * page}};
  Part second = {first.end(), part->length - first.length};
  bool first_went = give_back(first, patience);
  // Then the second has what the whole was refused for.
  bool second_went = !first_went && give_back(second, patience);
  *part = first_went ? second : first;
  if (!first_went && !second_went) kept_[kept_count_++] = second;
  return true;
}

void Purge::run(unsigned* patience) {
  if (!has_pages_) return;
  if (give_back(kept_[0], patience)) kept_[0] = kept_[--kept_count_];
  for (bool halved = true; halved;) {
    halved = false;
    // Parts of one length, one after the other.
    for (size_t index = 0, count = kept_count_; index < count; ++index) {
      if (*patience == 0 || !is_wanted()) return;
      halved |= halve(&kept_[index], patience);
    }
  }
}

Units Purge::refused() const {
  Units refused;
  for (size_t index = 0; index < kept_count_; ++index) refused += kept_[index].length;
  return refused;
}

// The first part that was kept from there on; an empty one at the end when there is none.
Purge::Part Purge::next_kept(Units from) const {
  Part next = {length_, {}};
  for (size_t index = 0; index < kept_count_; ++index) {
    const Part& part = kept_[index];
    if (!(part.offset < from) && part.offset < next.offset) next = part;
  }
  return next;
}

}  // namespace rh
