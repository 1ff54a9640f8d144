#include "arena/span_set.h"

#include <bit>

#include "base/bits.h"
#include "base/check.h"

namespace rh {

namespace {

uint64_t priority(const Span* span) { return mix(address_of(span)); }

}  // namespace

bool SpanSet::before(const Span* a, const Span* b) { return a->units != b->units ? a->units < b->units : a < b; }

// All of `low` stands before all of `high`.
Span* SpanSet::merge(Span* low, Span* high) {
  if (low == nullptr) return high;
  if (high == nullptr) return low;
  if (priority(low) > priority(high)) {
    low->right = merge(low->right, high);
    return low;
  }
  high->left = merge(low, high->left);
  return high;
}

// Parts the tree into what stands before `at` and the rest.
void SpanSet::split(Span* tree, const Span* at, Span** low, Span** high) {
  while (tree != nullptr) {
    if (before(tree, at)) {
      *low = tree;
      low = &tree->right;
      tree = tree->right;
    } else {
      *high = tree;
      high = &tree->left;
      tree = tree->left;
    }
  }
  *low = *high = nullptr;
}

void SpanSet::insert(Span* span) {
  total_ += Units{span->units};
  if (span->units < kExact) {
    Span*& list = exact_[span->units];
    span->left = nullptr;
    span->right = list;
    if (list != nullptr) list->left = span;
    list = span;
    nonempty_ |= uint64_t{1} << span->units;
    return;
  }
  Span** place = &tree_;
  while (*place != nullptr && priority(*place) >= priority(span))
    place = before(*place, span) ? &(*place)->right : &(*place)->left;
  Span* below = *place;
  split(below, span, &span->left, &span->right);
  *place = span;
}

void SpanSet::remove(Span* span) {
  total_ -= Units{span->units};
  if (span->units < kExact) {
    if (span->right != nullptr) span->right->left = span->left;
    if (span->left != nullptr) {
      span->left->right = span->right;
      return;
    }
    exact_[span->units] = span->right;
    if (span->right == nullptr) nonempty_ &= ~(uint64_t{1} << span->units);
    return;
  }
  Span** place = &tree_;
  while (*place != span) {
    RH_CHECK(*place != nullptr);
    place = before(*place, span) ? &(*place)->right : &(*place)->left;
  }
  *place = merge(span->left, span->right);
}

// What the tree's spans have together, added to *sum; false when they are out of order.
static bool add_tree(const Span* tree, size_t least, Units* sum) {
  if (tree == nullptr) return true;
  if (tree->units < least) return false;
  *sum += Units{tree->units};
  const Span* const both[] = {tree->left, tree->right};
  for (const Span* below : both)
    if (below != nullptr && priority(below) > priority(tree)) return false;
  return add_tree(tree->left, least, sum) && add_tree(tree->right, least, sum);
}

bool SpanSet::is_valid() const {
  Units sum;
  for (size_t length = 0; length < kExact; ++length) {
    if ((exact_[length] != nullptr) != ((nonempty_ >> length & 1) != 0)) return false;
    const Span* previous = nullptr;
    for (const Span* span = exact_[length]; span != nullptr; previous = span, span = span->right) {
      if (span->units != length || span->left != previous) return false;
      sum += Units{length};
    }
  }
  return add_tree(tree_, kExact, &sum) && sum == total_;
}

Span* SpanSet::longest() const {
  Span* span = tree_;
  while (span != nullptr && span->right != nullptr) span = span->right;
  return span != nullptr || nonempty_ == 0 ? span : exact_[std::bit_width(nonempty_) - 1];
}

Span* SpanSet::best_fit(Units units) const {
  if (units.count < kExact) {
    if (uint64_t fitting = nonempty_ >> units.count; fitting != 0)
      return exact_[units.count + static_cast<size_t>(std::countr_zero(fitting))];
  }
  Span* best = nullptr;
  for (Span* span = tree_; span != nullptr;) {
    if (span->units < units.count) {
      span = span->right;
    } else {
      best = span;
      span = span->left;
    }
  }
  return best;
}

}  // namespace rh
