// What the stores of heaps do at the arena: many spans back and many ahead, under one hold of its lock.
#include "arena/arena.h"

namespace rh {

namespace {

// Taken ahead in so many pieces at most; from so much on in one, if there is one.
constexpr int kMostPieces = 8;
constexpr Units kLongAhead{16};

}  // namespace

Arena::Visit Arena::trade(SpanList* back, SpanList* list, const Wanted& wanted, ThreadToken token) {
  Visit visit = trade_once(back, list, wanted, token);
  if (wanted.least > Units{} && list->empty() && make_room(wanted.least, token)) {
    Wanted least = wanted;
    least.most = wanted.least;
    visit.taken = trade_once(back, list, least, token).taken;
  }
  return visit;
}

Arena::Visit Arena::trade_once(SpanList* back, SpanList* list, const Wanted& wanted, ThreadToken token) {
  Visit visit;
  Units surplus;
  {
    Guard guard(*this, token);
    visit.number = ++visits_;
    if (!inconsistent()) take_back(back, &visit);
    if (wanted.least > Units{}) take_some(list, wanted, &visit, token);
    note_dirty();
    note_held();
    visit.is_tight = is_tight();
    if (visit.taken > Units{}) surplus = find_surplus();
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

void Arena::take_some(SpanList* list, const Wanted& wanted, Visit* visit, ThreadToken token) {
  Wanted left = wanted;
  left.most = ahead(wanted.least, wanted.most);
  Span* span = inconsistent() ? take_fresh(wanted.least, {1}, wanted.partition) : take_ahead(left, token);
  while (span == nullptr && wait_for_purge(token)) span = take_ahead(left, token);
  for (int pieces = 1; span != nullptr; ++pieces) {
    list->push_back(span);
    visit->taken += Units{span->units};
    left.most = Units{span->units} > left.most ? Units{} : left.most - Units{span->units};
    bool enough = pieces == kMostPieces || left.most < left.least || inconsistent();
    span = enough ? nullptr : take_ahead(left, token);
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
Span* Arena::take_ahead(const Wanted& wanted, ThreadToken token) {
  bool in_one = !(wanted.most < kLongAhead) && find_warm(wanted.most, wanted.partition) != nullptr;
  return take(in_one ? wanted.most : wanted.least, {1}, wanted.prefer, wanted.partition, token);
}

}  // namespace rh
