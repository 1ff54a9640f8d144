// Chance, and what follows from it where each byte of what is allocated is chosen with the same one. Without a library
// of mathematics.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rh::chance {

// Steele, Lea and Flood's SplitMix64 (2014).
uint64_t next_random(uint64_t& state);

// Of 0 < x <= 1, as exact as a double is.
double natural_logarithm(double x);

// How many bytes there are to the next chosen one, itself included, where one in `every` is chosen: at least 1. The
// numbers have a geometric distribution, which has no memory: where counting begins does not matter.
int64_t draw(uint64_t& random, uint64_t every);

// The probability that one of `size` bytes is chosen: 1 - exp(-size / every). Both are not 0.
double chosen_share(uint64_t size, uint64_t every);

}  // namespace rh::chance
