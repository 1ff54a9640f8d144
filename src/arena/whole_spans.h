// Spans of a heap's store that wait undivided for blocks of the same length, those of no more than 128 KiB, and few
// enough to look at each. A place that is touched all over and one of which a little is each serve their like again,
// where merged and divided anew all would be touched in time.
#pragma once

#include "arena/span.h"

namespace rh {

class WholeSpans {
 public:
  static constexpr Units kShortest = Units::holding(kMaxSmall + 1), kLongest = Units::holding(128 << 10);
  static constexpr bool admits(Units units) { return !(units < kShortest) && !(units > kLongest); }

  constexpr WholeSpans() = default;

  // The one that came last of those of exactly that length; null if there is none.
  Span* take(Units units);
  void put(Span* span, Heap* owner);

  // The one that lies right behind `span`; null if there is none.
  Span* take_behind(Span* span, Heap* owner);

  // The one that came first; null if there is none.
  Span* pop();

  Units total() const { return total_; }
  bool is_valid() const;

 private:
  void remove(Span* span);

  SpanList spans_;  // what came last first
  Units total_;
};

}  // namespace rh
