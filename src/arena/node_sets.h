// Free spans by the memory node (NUMA) of the thread that touched their pages first: there they lie, and there they are
// near. Where there is one node, this is one SpanSet.
#pragma once

#include <bit>

#include "arena/span_set.h"
#include "platform/platform.h"

namespace rh {

class NodeSets {
 public:
  constexpr NodeSets() = default;

  // Of one node.
  SpanSet& of(unsigned node) {
    used_ |= 1u << node;
    return sets_[node];
  }
  const SpanSet& of(unsigned node) const { return sets_[node]; }

  // As SpanSet's, from any node but that one.
  Span* best_fit_elsewhere(Units units, unsigned node) const {
    Span* best = nullptr;
    each(used_ & ~(1u << node), [&](const SpanSet& set) {
      Span* span = set.best_fit(units);
      if (span != nullptr && (best == nullptr || span->units < best->units)) best = span;
    });
    return best;
  }

  Units total() const {
    Units sum;
    each(used_, [&](const SpanSet& set) { sum += set.total(); });
    return sum;
  }

  bool is_valid() const {
    bool valid = true;
    each(used_, [&](const SpanSet& set) { valid = valid && set.is_valid(); });
    return valid;
  }

 private:
  template <typename Visit> void each(unsigned nodes, Visit visit) const {
    for (; nodes != 0; nodes &= nodes - 1) visit(sets_[std::countr_zero(nodes)]);
  }

  unsigned used_ = 0;  // a bit for each node that a span came from
  SpanSet sets_[platform::kMostNodes];
};

}  // namespace rh
