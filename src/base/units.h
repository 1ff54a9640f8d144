// A count of realm units: a type of its own, so that it cannot be mistaken for a count of bytes.
#pragma once

#include "base/bits.h"
#include "base/config.h"

namespace rh {

struct Units {
  size_t count = 0;

  // The fewest units that hold `bytes`.
  static constexpr Units holding(size_t bytes) { return {divide_up(bytes, kUnitSize)}; }

  constexpr size_t bytes() const { return count << kUnitShift; }

  friend constexpr bool operator==(Units, Units) = default;
  friend constexpr bool operator<(Units a, Units b) { return a.count < b.count; }
  friend constexpr bool operator>(Units a, Units b) { return b < a; }
  friend constexpr Units operator+(Units a, Units b) { return {a.count + b.count}; }
  friend constexpr Units operator-(Units a, Units b) { return {a.count - b.count}; }
  constexpr Units& operator+=(Units other) { return *this = *this + other; }
  constexpr Units& operator-=(Units other) { return *this = *this - other; }
};

}  // namespace rh
