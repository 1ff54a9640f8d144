// Memory is divided among partitions, so that what one of them had never becomes another's: of what lay there before,
// nothing of another kind can be reached. Each unit is of one from when the OS gave it, for ever; Span::partition says
// of which. Where nothing is divided there is but one. docs/design/types.md says who uses them for what.
#pragma once

#include <bit>

#include "arena/span.h"

namespace rh {

using Partition = unsigned;
inline constexpr Partition kUntyped = 0;  // of all that nobody says a type of
inline constexpr unsigned kPartitions = kHardened ? 17 : 1;
static_assert(kPartitions - 1 <= ReturnedAndPartition::kMostPartition);

inline Partition partition_of(const Span* span) { return kHardened ? span->others.partition() : kUntyped; }

// A set of free spans for each partition.
template <typename Set> class Divided {
 public:
  constexpr Divided() = default;

  Set& of(Partition partition) {
    if constexpr (kPartitions == 1) return sets_[0];
    used_ |= 1u << partition;
    return sets_[partition];
  }
  const Set& of(Partition partition) const { return sets_[kPartitions == 1 ? 0 : partition]; }

  Units total() const {
    Units sum;
    each([&](const Set& set) { sum += set.total(); });
    return sum;
  }

  bool is_valid() const {
    bool valid = true;
    each([&](const Set& set) { valid = valid && set.is_valid(); });
    return valid;
  }

  template <typename Visit> void each(Visit visit) const {
    if constexpr (kPartitions == 1) return visit(sets_[0]);
    for (unsigned left = used_; left != 0; left &= left - 1) visit(sets_[std::countr_zero(left)]);
  }

 private:
  unsigned used_ = 0;  // a bit for each partition that a span came from
  Set sets_[kPartitions];
};

}  // namespace rh
