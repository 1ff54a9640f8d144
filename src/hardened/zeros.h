// Memory that is to be zero, in steps of sixteen bytes.
#pragma once

#include "base/bits.h"
#include "base/compiler.h"
#include "base/config.h"

namespace rh::hardened {

using Sixteen [[gnu::vector_size(16), gnu::may_alias]] = uint64_t;
static_assert(sizeof(Sixteen) == kBlockAlign);

// How long a block is, a multiple of sixteen, and where its second, third, and fourth sixteen lie: in a shorter block
// the last one instead. Tables of it spare the short ways to compute that.
struct Steps {
  // Blocks up to here are visited without a loop or a branch, some of their sixteens more than once: how long the next
  // block is cannot be foreseen.
  static constexpr size_t kFew = 5 * sizeof(Sixteen);

  uint16_t length, second, third, fourth;

  static constexpr Steps of(size_t length) {
    auto step = [last = length - sizeof(Sixteen)](size_t at) { return static_cast<uint16_t>(at < last ? at : last); };
    return {static_cast<uint16_t>(length), step(sizeof(Sixteen)), step(2 * sizeof(Sixteen)), step(3 * sizeof(Sixteen))};
  }
};

RH_INLINE Sixteen& sixteen_at(Sixteen* from, size_t offset) {
  return *reinterpret_cast<Sixteen*>(reinterpret_cast<char*>(from) + offset);
}
RH_INLINE const Sixteen& sixteen_at(const Sixteen* from, size_t offset) {
  return *reinterpret_cast<const Sixteen*>(reinterpret_cast<const char*>(from) + offset);
}

// Those in the first 64 bytes.
template <typename At, typename Visit> RH_INLINE void each_of_first(At* from, const Steps& steps, Visit visit) {
  visit(*from);
  visit(sixteen_at(from, steps.second));
  visit(sixteen_at(from, steps.third));
  visit(sixteen_at(from, steps.fourth));
}

// All of a few.
template <typename At, typename Visit> RH_INLINE void each_of_few(At* from, const Steps& steps, Visit visit) {
  each_of_first(from, steps, visit);
  visit(sixteen_at(from, size_t{steps.length} - sizeof(Sixteen)));
}

// Of four and more: the last four are visited however many of them have been.
template <typename At, typename Visit> RH_INLINE void each_of_many(At* first, size_t size, Visit visit) {
  At* last_four = first + size / sizeof(Sixteen) - 4;
  for (; first < last_four; first += 4) {
    for (size_t index = 0; index < 4; ++index) visit(first[index]);
    asm volatile("" : : : "memory");  // compilers make a call of memset of it
  }
  for (size_t index = 0; index < 4; ++index) visit(last_four[index]);
}

// Of a whole block.
//
// Not memset: malloc and free may be called before the program is relocated, and the C library's functions not.
RH_INLINE void clear_few(void* block, const Steps& steps) {
  each_of_few(static_cast<Sixteen*>(block), steps, [](Sixteen& sixteen) { sixteen = Sixteen{}; });
}
RH_INLINE void clear_many(void* block, size_t size) {
  each_of_many(static_cast<Sixteen*>(block), size, [](Sixteen& sixteen) { sixteen = Sixteen{}; });
}
inline void clear(void* block, const Steps& steps) {
  return steps.length <= Steps::kFew ? clear_few(block, steps) : clear_many(block, steps.length);
}

inline bool is_zero(const Sixteen& sixteen) { return (sixteen[0] | sixteen[1]) == 0; }

// Of one up to kFew long; and of a longer one.
RH_INLINE bool is_clear_few(const void* block, const Steps& steps) {
  Sixteen all = {};
  each_of_few(static_cast<const Sixteen*>(block), steps, [&](const Sixteen& sixteen) { all |= sixteen; });
  return is_zero(all);
}
RH_INLINE bool is_clear_many(const void* block, size_t size) {
  Sixteen all = {};
  each_of_many(static_cast<const Sixteen*>(block), size, [&](const Sixteen& sixteen) { all |= sixteen; });
  return is_zero(all);
}
inline bool is_clear(const void* block, const Steps& steps) {
  return steps.length <= Steps::kFew ? is_clear_few(block, steps) : is_clear_many(block, steps.length);
}

// Of a kibibyte and more, a multiple of 64: by vectors of 32 bytes where the processor has such.
void clear_long(void* block, size_t size);
bool is_clear_long(const void* block, size_t size);

// Whether it does. To be called once, by the process's only thread.
void look_at_processor();

// Of its first 64 bytes, or all.
RH_INLINE bool starts_clear(const void* block, const Steps& steps) {
  Sixteen all = {};
  each_of_first(static_cast<const Sixteen*>(block), steps, [&](const Sixteen& sixteen) { all |= sixteen; });
  return is_zero(all);
}

}  // namespace rh::hardened
