// Contents that show whether a block was damaged, and sizes worth trying.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace contract {

inline std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() { return mix(state_++); }
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(next() % bound); }
  bool one_in(std::size_t odds) { return below(odds) == 0; }

  // Every power of two up to `most` is equally likely: skewed small, as in real programs.
  std::size_t size(std::size_t most) {
    std::size_t bound = 16;
    while (bound < most && !one_in(4)) bound *= 2;
    return 1 + below(bound < most ? bound : most);
  }

 private:
  std::uint64_t state_;
};

// Each byte depends on its position and the seed, so that neither a shifted nor a swapped block passes.
inline std::uint64_t pattern_word(std::uint64_t seed, std::size_t word) {
  return (seed + word) * 0x9e3779b97f4a7c15u ^ seed;
}

inline void fill(void* block, std::size_t size, std::uint64_t seed) {
  auto* bytes = static_cast<unsigned char*>(block);
  std::size_t at = 0;
  // The builtin is inlined where the tests' -fno-builtin would make a call a word.
  for (; at + 8 <= size; at += 8) {
    const std::uint64_t word = pattern_word(seed, at / 8);
    __builtin_memcpy(bytes + at, &word, 8);
  }
  const std::uint64_t word = pattern_word(seed, at / 8);
  if (at < size) std::memcpy(bytes + at, &word, size - at);
}

inline bool intact(const void* block, std::size_t size, std::uint64_t seed) {
  const auto* bytes = static_cast<const unsigned char*>(block);
  std::size_t at = 0;
  std::uint64_t difference = 0;
  for (; at + 8 <= size; at += 8) {
    std::uint64_t word;
    __builtin_memcpy(&word, bytes + at, 8);
    difference |= word ^ pattern_word(seed, at / 8);
  }
  const std::uint64_t word = pattern_word(seed, at / 8);
  return difference == 0 && (at == size || std::memcmp(bytes + at, &word, size - at) == 0);
}

inline bool all_zero(const void* block, std::size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(block);
  if (size == 0) return true;
  return bytes[0] == 0 && std::memcmp(bytes, bytes + 1, size - 1) == 0;
}

// Sizes up to `most`: all the small ones, then each eighth of a doubling with both its neighbours,
// which straddles every boundary of any usual size-class map.
inline std::vector<std::size_t> interesting_sizes(std::size_t most, std::size_t dense = 130) {
  std::vector<std::size_t> sizes;
  for (std::size_t size = 0; size <= dense && size <= most; ++size) sizes.push_back(size);
  for (std::size_t base = 128; base <= most; base *= 2) {
    for (std::size_t step = 0; step < 8; ++step) {
      const std::size_t size = base + base / 8 * step;
      for (const std::size_t neighbour : {size - 1, size, size + 1})
        if (neighbour > dense && neighbour <= most) sizes.push_back(neighbour);
    }
  }
  return sizes;
}

}  // namespace contract
