// Clang's allocation tokens (-fsanitize=alloc-token): a number beside each allocation, which says of what type it is.
// docs/design/types.md has what is known of them.
#pragma once

#include <cstddef>

#include "arena/partition.h"

namespace rh::tokens {

// In hardened builds the memory of each token below 16 is apart from that of all others. Larger ones are of a program
// that has many more: types that contain pointers, whose tokens are the upper half of all numbers, are in eight of the
// partitions, others in seven, and in the one that is left what the compiler knew no type of, whose token is 0.
constexpr Partition partition_of(size_t token) {
  if constexpr (kPartitions == 1) return kUntyped;
  constexpr size_t kFew = kPartitions - 1, kHalf = kFew / 2;
  if (token < kFew) return 1 + static_cast<Partition>(token);
  const bool has_pointers = token > SIZE_MAX / 2;
  const size_t choices = has_pointers ? kHalf : kHalf - 1;
  const uint64_t spread = (token * uint64_t{0x9e3779b97f4a7c15}) >> 32;  // neighbours are apart
  const size_t chosen = static_cast<size_t>((spread * choices) >> 32);
  return 1 + static_cast<Partition>((has_pointers ? kHalf : 1) + chosen);
}

}  // namespace rh::tokens
