#include "arena/span_store.h"

#include "base/check.h"

namespace rh {

namespace {

constexpr Units kMostBudget = Units::holding(8 << 20);

// However few others visit the arena; and for each of them.
constexpr Units kBudgetOfFew = Units::holding(2 << 20);
constexpr Units kBudgetForEach = Units::holding(512 << 10);

// Others are counted in fractions.
constexpr size_t kOne = 64;

// Of what the heap has taken.
constexpr size_t kBudgetShare = 2;

// Of what the heap has taken, for whole spans, and at most.
constexpr size_t kShareForWhole = 16;
constexpr Units kMostRoom = Units::holding(512 << 10);

// More pieces at a time would have others wait.
constexpr int kPiecesAtATime = 64;

// A visit for so many uses is seldom enough.
constexpr size_t kSeldomAsked = 128;

bool is_kept_by(const Span* span, SpanKind kind, const Heap* keeper) {
  return span->kind.load() == kind && span->owner.load() == keeper;
}

// The span that ends before `span`, if `keeper` keeps it.
Span* kept_before(Span* span, const Heap* keeper) {
  if (span == g_realm.first()) return nullptr;
  Span* before = span - 1;
  if (is_kept_by(before, SpanKind::kept, keeper)) return before;  // of one unit: of a longer one it is the tail
  return is_kept_by(before, SpanKind::kept_tail, keeper) ? before - before->units : nullptr;
}

Span* kept_behind(Span* span, const Heap* keeper) {
  Span* behind = span + span->units;
  return g_realm.contains(behind) && is_kept_by(behind, SpanKind::kept, keeper) ? behind : nullptr;
}

// One span of all that lie side by side at the front of the list.
Span* pop_joined(SpanList* spans) {
  Span* span = spans->pop_front();
  for (Span* next = spans->first(); next == span + span->units; next = spans->first()) {
    spans->remove(next);
    span->units += next->units;
  }
  return span;
}

Units smaller(Units one, Units other) { return one < other ? one : other; }

void set(Span* unit, SpanKind kind, Heap* owner) {
  unit->kind.store(kind);
  unit->owner.store(owner);
}

}  // namespace

Span* SpanStore::take(Units units, Use use, Heap* owner, ThreadToken token, Partition partition) {
  uses_.add(1);
  if (use == Use::block) {
    if (Span* span = whole_.take(units)) return span;
  }
  Span* span = free_.best_fit(units);
  if (span == nullptr && whole_.total() > room_) {
    merge_whole(room_, owner);
    span = free_.best_fit(units);
  }
  if (span == nullptr) {
    span = fetch(units, use, owner, token, partition);
    if (span != nullptr) return span;
    merge_whole({}, owner);
    span = free_.best_fit(units);
  }
  return span != nullptr ? carve(span, units, owner) : nullptr;
}

void SpanStore::give(Span* span, Use use, Heap* owner, ThreadToken token) {
  uses_.add(1);
  if (!kHardened) span->zero = false;
  if (use == Use::block && keep_whole(span, owner)) return give_back_surplus(owner, token);
  if (!(Units{span->units} > longest_kept())) {
    span = insert(span, owner);
    if (!(Units{span->units} > longest_kept())) return give_back_surplus(owner, token);
    remove(span);
  }
  SpanList alone;
  alone.push_back(span);
  visit(&alone, nullptr, {}, token);
}

// A small store would divide long spans for want of what fits better: they go to the arena at once, where they are one
// with what lies beside them, whoever had that. But where many would have to wait for it, each keeps its own.
Units SpanStore::longest_kept() const {
  if (budget_ > kBudgetOfFew) return budget_;
  const Units share{budget_.count / 8};
  return share > kLeastBudget ? share : kLeastBudget;
}

// False when there is no room for it. Within the store's budget they may take more than theirs, for as long as nobody
// wants it divided.
bool SpanStore::keep_whole(Span* span, Heap* owner) {
  const Units units{span->units};
  if (!WholeSpans::admits(units)) return false;
  if (!keeps_whole_) {
    keeps_whole_ = true;
    make_room();
  }
  const Units most = smaller(room_ > budget_ ? room_ : budget_, kMostRoom);
  if (units > most) return false;
  whole_.put(span, owner);
  merge_whole(most, owner);
  return true;
}

void SpanStore::give_some(SpanList* spans, Heap* owner, ThreadToken token) {
  SpanList back;
  for (int pieces = 0; pieces < kPiecesAtATime && !spans->empty(); ++pieces) {
    Span* span = pop_joined(spans);
    uses_.add(1);
    if (!kHardened) span->zero = false;
    if (free_.total() + Units{span->units} > budget_ || Units{span->units} > longest_kept())
      back.push_back(span);
    else
      insert(span, owner);
  }
  if (!back.empty()) visit(&back, nullptr, {}, token);
}

void SpanStore::give_all(SpanList* spans, Heap* owner, ThreadToken token) {
  while (!spans->empty()) give_some(spans, owner, token);
  give_back_surplus(owner, token);
}

bool SpanStore::lengthen(Span* span, Units to, Heap* owner) {
  Units more = to - Units{span->units};
  if (Span* whole = whole_.take_behind(span, owner)) insert(whole, owner);
  Span* behind = kept_behind(span, with_note(owner, kInStore));
  if (behind == nullptr || behind->units < more.count) return false;
  uses_.add(1);
  bool zero = behind->zero;
  carve(behind, more, owner);
  span->units = static_cast<uint32_t>(to.count);
  span->zero = zero;
  return true;
}

void SpanStore::empty(ThreadToken token) {
  SpanList whole;
  while (Span* span = whole_.pop()) whole.push_back(span);
  if (!whole.empty()) visit(&whole, nullptr, {}, token);
  if (total() > Units{}) give_back_beyond({}, token);
  budget_ = kLeastBudget;
  keeps_whole_ = false;
  make_room();
}

void SpanStore::hand_over(Units units, SpanStore* to) {
  taken_ = taken_ > units ? taken_ - units : Units{};
  to->taken_ += units;
}

// Puts a span that is in nobody's hands into the store, and gives it, one with what lies beside it there, and as young
// as itself.
Span* SpanStore::insert(Span* span, Heap* owner) {
  Heap* keeper = with_note(owner, kInStore);
  if (Span* behind = kept_behind(span, keeper)) {
    remove(behind);
    span->zero = span->zero && behind->zero;
    if (behind->units > span->units) span->node = behind->node;
    span->units += behind->units;
  }
  if (Span* before = kept_before(span, keeper)) {
    remove(before);
    before->zero = before->zero && span->zero;
    if (span->units > before->units) before->node = span->node;
    before->units += span->units;
    span = before;
  }
  if (span->units > 1) {
    Span* tail = span + span->units - 1;
    tail->units = span->units - 1;
    set(tail, SpanKind::kept_tail, keeper);
  }
  set(span, SpanKind::kept, keeper);
  free_.insert(span);
  by_age_.push_back(span);
  return span;
}

void SpanStore::remove(Span* span) {
  RH_CHECK(span->kind.load() == SpanKind::kept);
  free_.remove(span);
  by_age_.remove(span);
  if (span->units > 1) set(span + span->units - 1, SpanKind::none, nullptr);
  set(span, SpanKind::none, nullptr);
}

// The first units of a kept span; the rest stays.
Span* SpanStore::carve(Span* span, Units units, Heap* owner) {
  remove(span);
  return cut(span, units, owner);
}

// The first units of a span in nobody's hands; the rest is kept.
Span* SpanStore::cut(Span* span, Units units, Heap* owner) {
  if (span->units > units.count) {
    Span* rest = span + units.count;
    rest->units = span->units - static_cast<uint32_t>(units.count);
    rest->zero = span->zero;
    rest->node = span->node;
    span->units = static_cast<uint32_t>(units.count);
    insert(rest, owner);
  }
  return span;
}

// Of the slabs of a small heap, and of what it takes ahead, most may never be touched: a thousand threads that hold a
// few blocks each are no dense memory. In one that has filled a huge page they are little.
Prefer SpanStore::preference(Use use) const {
  const bool is_dense = use == Use::dense_slab && taken_.bytes() >= platform::huge_page_size();
  return is_dense ? Prefer::dense : Prefer::warm;
}

// What is asked for, and so much more that there is room for as much again to come back.
Span* SpanStore::fetch(Units units, Use use, Heap* owner, ThreadToken token, Partition partition) {
  Units half{budget_.count / 2}, wanted = units;
  if (half > free_.total() + units) wanted = half - free_.total();
  SpanList nothing, spans;
  visit(&nothing, &spans, {units, wanted, preference(use), partition}, token);
  Span* first = spans.pop_front();
  while (Span* span = spans.pop_front()) insert(span, owner);
  return first != nullptr ? cut(first, units, owner) : nullptr;
}

void SpanStore::make_room() {
  const Units share{keeps_whole_ && !is_tight_ ? taken_.count / kShareForWhole : 0};
  room_ = smaller(share, kMostRoom);
}

// Those that came first are free like others.
void SpanStore::merge_whole(Units beyond, Heap* owner) {
  while (whole_.total() > beyond) insert(whole_.pop(), owner);
}

// What is kept whole beyond its room counts as what is divided.
void SpanStore::give_back_surplus(Heap* owner, ThreadToken token) {
  if (!(total() > budget_ + smaller(room_, whole_.total()))) return;
  merge_whole(room_, owner);
  give_back_beyond({budget_.count / 2}, token);
}

// The oldest.
void SpanStore::give_back_beyond(Units most, ThreadToken token) {
  SpanList back;
  while (free_.total() > most) {
    Span* span = by_age_.first();
    remove(span);
    back.push_back(span);
  }
  visit(&back, nullptr, {}, token);
}

void SpanStore::visit(SpanList* back, SpanList* list, const Arena::Wanted& wanted, ThreadToken token) {
  Arena::Visit visit = g_arena.trade(back, list, wanted, token);
  taken_ += visit.taken;
  taken_ = taken_ > visit.given ? taken_ - visit.given : Units{};
  adapt(visit);
}

void SpanStore::adapt(const Arena::Visit& visit) {
  bool often = uses_.value() - uses_before_ < kSeldomAsked;
  uses_before_ = uses_.value();
  const size_t others = visit_before_ == 0 ? 0 : visit.number - visit_before_ - 1;
  visit_before_ = visit.number;
  note_others(others);
  size_t next = budget_.count, most = most_budget().count;
  if (often) next = others != 0 ? next * 2 : next - next / 64;
  if (next > most) next = most;
  if (visit.is_tight) next = 0;
  budget_ = next > kLeastBudget.count ? Units{next} : kLeastBudget;
  is_tight_ = visit.is_tight;
  make_room();
}

// The mean, of the latest visits. Whoever was kept from visiting sees many others, which counts as a few times as many
// as before.
void SpanStore::note_others(size_t others) {
  const size_t most = 4 * (others_ + kOne), seen = others < most / kOne ? others * kOne : most;
  others_ = others_ - others_ / 8 + seen / 8;
}

// How many visit the arena as often as this store does is what tells how long each would have to wait there.
Units SpanStore::most_budget() const {
  const Units for_others{others_ * kBudgetForEach.count / kOne};
  const Units most = smaller(for_others > kBudgetOfFew ? for_others : kBudgetOfFew, kMostBudget);
  return smaller(most, {taken_.count / kBudgetShare});
}

}  // namespace rh
