// Memory that is to be zero, in steps of sixteen bytes.
#pragma once

#include "base/bits.h"
#include "base/compiler.h"
#include "base/config.h"

namespace rh::hardened {

using Sixteen [[gnu::vector_size(16), gnu::may_alias]] = uint64_t;
static_assert(sizeof(Sixteen) == kBlockAlign);

// Visits a run of one to four sixteens, some of them again: without a branch, for how long the next run is cannot be
// foreseen. The same of four and more, where the last four are visited however many of them have been.
template <typename At, typename Visit> RH_INLINE void each_of_few(At* first, At* last, Visit visit) {
  size_t second = first < last ? 1 : 0;
  visit(first[0]);
  visit(first[second]);
  visit(*(last - second));
  visit(*last);
}
template <typename At, typename Visit> RH_INLINE void each_of_many(At* first, At* last, Visit visit) {
  for (; last - first >= 4; first += 4) {
    for (size_t index = 0; index < 4; ++index) visit(first[index]);
    asm volatile("" : : : "memory");  // compilers make a call of memset of it
  }
  for (size_t index = 0; index < 4; ++index) visit(*(last - index));
}

template <typename At, typename Visit> RH_INLINE void each_sixteen(At* first, size_t size, Visit visit) {
  At* last = first + size / sizeof(Sixteen) - 1;
  if (last - first < 4)
    each_of_few(first, last, visit);
  else
    each_of_many(first, last, visit);
}

// Of `size` bytes, a multiple of sixteen and not none.
//
// Not memset: malloc and free may be called before the program is relocated, and the C library's functions not.
RH_INLINE void clear(void* from, size_t size) {
  each_sixteen(static_cast<Sixteen*>(from), size, [](Sixteen& sixteen) { sixteen = Sixteen{}; });
}

RH_INLINE bool is_clear(const void* from, size_t size) {
  Sixteen all = {};
  each_sixteen(static_cast<const Sixteen*>(from), size, [&](const Sixteen& sixteen) { all |= sixteen; });
  return (all[0] | all[1]) == 0;
}

// Of its first 64 bytes, or all.
RH_INLINE bool starts_clear(const void* from, size_t size) {
  const Sixteen* first = static_cast<const Sixteen*>(from);
  size_t last = size / sizeof(Sixteen) - 1;
  Sixteen all = {};
  each_of_few(first, first + (last < 3 ? last : 3), [&](const Sixteen& sixteen) { all |= sixteen; });
  return (all[0] | all[1]) == 0;
}

}  // namespace rh::hardened
