// Free spans of one kind, found by size: best fit, lowest address first among the large. Short lengths have a
// list each, found through a bitmap; the others a treap ordered by length and address, its priorities a hash of
// the address (Seidel and Aragon, "Randomized search trees", 1996), so expected depth is logarithmic.
#pragma once

#include "arena/span.h"

namespace rh {

class SpanSet {
 public:
  constexpr SpanSet() = default;

  void insert(Span* span);
  void remove(Span* span);

  // The shortest span of at least `units`, or null. It stays in the set.
  Span* best_fit(Units units) const;

  // One of the longest, or null.
  Span* longest() const;

  Units total() const { return total_; }

  // Whether every span is where its length belongs, and all of them are counted. Looks at all.
  bool is_valid() const;

 private:
  static constexpr size_t kExact = 64;  // lengths below this have their own list

  static bool before(const Span* a, const Span* b);
  static Span* merge(Span* low, Span* high);
  static void split(Span* tree, const Span* at, Span** low, Span** high);

  Span* exact_[kExact] = {};
  uint64_t nonempty_ = 0;
  Span* tree_ = nullptr;
  Units total_;
};

}  // namespace rh
