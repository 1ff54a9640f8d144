// Free spans that one heap keeps for itself, so that its thread seldom meets others at the arena: best fit, neighbours
// merged, the oldest given back in batches. A store takes more than it is asked for, and keeps what comes back, up to
// its budget. That is small until visits to the arena are frequent and others come there in between; then it doubles at
// each such visit, up to a fraction of what the heap has taken, and to so much for each of the others.
//
// The caller holds the heap's lock. `owner` is that heap.
#pragma once

#include "arena/arena.h"
#include "arena/whole_spans.h"

namespace rh {

class SpanStore {
 public:
  // Longer spans come from the arena and go there.
  static constexpr Units kLongest = Units::holding(1 << 20);
  static constexpr Units kLeastBudget{8};

  constexpr SpanStore() = default;

  // What a span is for. Those of blocks are kept whole for other blocks. Those of slabs are divided like others: that
  // thousands of small blocks lie close to each other counts for more. Of a dense slab, whose blocks are no longer than
  // a page, every page is about to be touched.
  enum class Use { dense_slab, slab, block };

  // An allocated span of exactly `units`, at most kLongest; null when there is no memory. As from Arena::allocate.
  // `partition` is the same each time.
  Span* take(Units units, Use use, Heap* owner, ThreadToken token, Partition partition = kUntyped);

  // Takes back what take() gave, of any length by now; its descriptors are of kind none.
  void give(Span* span, Use use, Heap* owner, ThreadToken token);

  // The same of many, all of `spans`; most go to the arena, in batches.
  void give_all(SpanList* spans, Heap* owner, ThreadToken token);

  // As Arena::lengthen, into what lies in this store.
  bool lengthen(Span* span, Units to, Heap* owner);

  // Gives all to the arena.
  void empty(ThreadToken token);

  // A slab goes over to another heap, which will give its span back.
  void hand_over(Units units, SpanStore* to);

  // Whether it can serve without the arena.
  bool has(Units units) const { return free_.best_fit(units) != nullptr; }

  Units total() const { return free_.total() + whole_.total(); }
  Units budget() const { return budget_ + room_; }

  // What the heap has from the arena.
  Units taken() const { return taken_; }

  // How often anything was asked of it.
  size_t uses() const { return uses_.value(); }

  bool is_valid() const { return free_.is_valid() && whole_.is_valid(); }

 private:
  Span* insert(Span* span, Heap* owner);
  void remove(Span* span);
  Span* carve(Span* span, Units units, Heap* owner);
  Span* cut(Span* span, Units units, Heap* owner);
  bool keep_whole(Span* span, Heap* owner);
  void make_room();
  void merge_whole(Units beyond, Heap* owner);
  void give_some(SpanList* spans, Heap* owner, ThreadToken token);
  Prefer preference(Use use) const;
  Span* fetch(Units units, Use use, Heap* owner, ThreadToken token, Partition partition);
  void give_back_surplus(Heap* owner, ThreadToken token);
  void give_back_beyond(Units most, ThreadToken token);
  void visit(SpanList* back, SpanList* list, const Arena::Wanted& wanted, ThreadToken token);
  void adapt(const Arena::Visit& visit);
  void note_others(size_t others);
  Units most_budget() const;
  Units longest_kept() const;

  SpanSet free_;
  SpanList by_age_;  // oldest first, of those
  WholeSpans whole_;
  Units budget_ = kLeastBudget;  // for the others
  Units room_;                   // for whole ones
  bool keeps_whole_ = false;     // some came that can be kept whole
  bool is_tight_ = false;        // at the last visit
  Units taken_;                  // from the arena, and not given back
  size_t uses_before_ = 0;       // at the last visit to the arena
  size_t visit_before_ = 0;      // its number
  size_t others_ = 0;            // who visit between two of its own visits, in parts of kOne
  Counter uses_;
};

}  // namespace rh
