// What the stores of heaps do at the arena: many spans back and many ahead, under one hold of its lock.
#include "arena/arena.h"

namespace rh {

namespace {

// Taken ahead in so many pieces at most; from so much on in one, if there is one.
constexpr int kMostPieces = 8;
constexpr Units kLongAhead{16};

}  // namespace

Arena::Visit Arena::trade(SpanList* back, SpanList* list, Units least, Units most, const void* visitor,
                          ThreadToken token, Partition partition) {
  Visit visit = trade_once(back, list, least, most, visitor, partition, token);
  if (least > Units{} && list->empty() && make_room(least, token))
    visit.taken = trade_once(back, list, least, least, visitor, partition, token).taken;
  return visit;
}

Arena::Visit Arena::trade_once(SpanList* back, SpanList* list, Units least, Units most, const void* visitor,
                               Partition partition, ThreadToken token) {
  Visit visit;
  Units surplus;
  {
    Guard guard(*this, token);
    visit.met_others = visitor_ != nullptr && visitor_ != visitor;
    visitor_ = visitor;
    if (!inconsistent()) take_back(back, &visit);
    if (least > Units{}) take_some(list, least, ahead(least, most), &visit, partition, token);
    note_dirty();
    note_held();
    visit.is_tight = is_tight();
    if (visit.taken > Units{}) surplus = beyond_peak();
  }
  if (surplus > Units{}) return_surplus(surplus, token);
  return visit;
}

void Arena::take_back(SpanList* spans, Visit* visit) {
  if (spans->empty()) return;
  uint32_t now = static_cast<uint32_t>(platform::now_ms());
  while (Span* span = spans->pop_front()) {
    span->owner.store(nullptr);
    visit->given += Units{span->units};
    // What the program has used and reads as zero all the same lies between what does not.
    if (kHardened && span->zero) in_pieces_ = true;
    insert(span, span->zero ? SpanKind::free_clean : SpanKind::free_dirty, now);
  }
  note_in_use(in_use_ - visit->given);
}

void Arena::take_some(SpanList* list, Units least, Units most, Visit* visit, Partition partition, ThreadToken token) {
  Span* span = inconsistent() ? take_fresh(least, {1}, partition) : take_ahead(least, most, partition, token);
  while (span == nullptr && wait_for_purge(token)) span = take_ahead(least, most, partition, token);
  for (int pieces = 1; span != nullptr; ++pieces) {
    list->push_back(span);
    visit->taken += Units{span->units};
    bool enough = pieces == kMostPieces || most < visit->taken + least || inconsistent();
    span = enough ? nullptr : take_ahead(least, most - visit->taken, partition, token);
  }
}

// Of warm memory nobody takes more ahead than a quarter: when it is short others would grow for want of it.
Units Arena::ahead(Units least, Units most) const {
  if (is_tight()) return least;
  Units share{dirty_.total().count / 4};
  if (share == Units{} || most < share) return most;
  return share < least ? least : share;
}

// The caller holds the lock. Little is taken where it fits best, to leave no holes; much in one piece, of which the
// rest will follow what is used of it.
Span* Arena::take_ahead(Units least, Units most, Partition partition, ThreadToken token) {
  bool in_one = !(most < kLongAhead) && find_warm(most, partition) != nullptr;
  return take(in_one ? most : least, {1}, Prefer::warm, partition, token);
}

}  // namespace rh
