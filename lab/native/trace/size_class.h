// How sizes are grouped where they are counted: by the allocator's classes, which go on in the same way beyond its
// largest. Class k holds the sizes above that of class k-1 up to `size_of(k)`; the first also holds 0.
#pragma once

#include "slabs/size_class.h"

namespace trace {

constexpr size_t class_of(uint64_t size) {
  using namespace rh::size_class;
  if (size <= rh::kMaxSmall) return of(static_cast<size_t>(size));
  const unsigned top = static_cast<unsigned>(std::bit_width(size - 1)) - 1;
  const auto step = static_cast<size_t>((size - 1) >> (top - 3)) & (kPerDoubling - 1);
  return kCount + (top - rh::highest_bit(rh::kMaxSmall)) * kPerDoubling + step;
}

constexpr uint64_t size_of(size_t index) { return rh::size_class::size_of(index); }

static_assert(class_of(rh::kMaxSmall) + 1 == rh::size_class::kCount);
static_assert(class_of(rh::kMaxSmall + 1) == rh::size_class::kCount);
static_assert(class_of(size_of(200)) == 200 && class_of(size_of(200) + 1) == 201);

}  // namespace trace
