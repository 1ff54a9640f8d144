// Arithmetic on sizes and addresses. Alignments are powers of two.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace rh {

inline constexpr size_t kMiB = size_t{1} << 20;

// Not std::has_single_bit: it counts bits, which is a function call where the processor may lack the instruction.
constexpr bool is_power_of_two(size_t value) { return value != 0 && (value & (value - 1)) == 0; }

constexpr uintptr_t align_down(uintptr_t value, size_t alignment) {
  return value & ~(static_cast<uintptr_t>(alignment) - 1);
}

// The caller rules out overflow.
constexpr uintptr_t align_up(uintptr_t value, size_t alignment) { return align_down(value + alignment - 1, alignment); }

constexpr size_t divide_up(size_t value, size_t divisor) { return value / divisor + (value % divisor != 0); }

// Index of the highest set bit; value is not 0.
constexpr unsigned highest_bit(size_t value) { return static_cast<unsigned>(std::bit_width(value)) - 1; }

// A well-mixed number from a regular one (the finaliser of SplitMix64).
constexpr uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return value ^ (value >> 31);
}

// Both halves of a product in one: each bit of it depends on all bits of both factors. (W. Yi: wyhash, 2019.)
constexpr uint64_t folded_product_by_parts(uint64_t one, uint64_t other) {
  constexpr uint64_t kHalf = UINT32_MAX;
  uint64_t low = (one & kHalf) * (other & kHalf);
  uint64_t middle = (one >> 32) * (other & kHalf) + (low >> 32);
  uint64_t beside = (one & kHalf) * (other >> 32) + (middle & kHalf);
  return ((one >> 32) * (other >> 32) + (middle >> 32) + (beside >> 32)) ^ (beside << 32 | (low & kHalf));
}

inline uint64_t folded_product(uint64_t one, uint64_t other) {
#if defined(__x86_64__) && !defined(__arm64ec__)
  // Of a product of 128 bits GCC keeps two registers more than it needs.
  uint64_t low = one, high;
  asm("mulq %2" : "+a"(low), "=d"(high) : "rm"(other) : "cc");
  return high ^ low;
#elif defined(__SIZEOF_INT128__)
  __extension__ using Long = unsigned __int128;
  Long product = Long{one} * other;
  return static_cast<uint64_t>(product >> 64) ^ static_cast<uint64_t>(product);
#else
  return folded_product_by_parts(one, other);
#endif
}

inline uintptr_t address_of(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

}  // namespace rh
