// How sizes are grouped where they are counted: by 16 bytes to 128, then eight to a doubling. Class k holds the sizes above
// that of class k-1 up to `size_of(k)`; the first also holds 0.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace trace {

constexpr size_t class_of(uint64_t size) {
  if (size <= 128) return size == 0 ? 0 : static_cast<size_t>((size - 1) / 16);
  const auto shift = static_cast<unsigned>(std::bit_width(size - 1)) - 4;
  return static_cast<size_t>((shift - 4) * 8 + ((size - 1) >> shift));
}

constexpr uint64_t size_of(size_t index) {
  if (index < 8) return (index + 1) * 16;
  const size_t group = (index - 8) / 8;
  return (8 + (index - 8) % 8 + 1) << (group + 4);
}

static_assert(class_of(1) == 0 && class_of(16) == 0 && class_of(17) == 1 && class_of(128) == 7);
static_assert(class_of(129) == 8 && size_of(8) == 144 && class_of(144) == 8 && class_of(145) == 9);
static_assert(class_of(256) == 15 && size_of(15) == 256 && class_of(257) == 16 &&
              size_of(16) == 288);

}  // namespace trace
