#include "base/chance.h"

#include <bit>

namespace rh::chance {

uint64_t next_random(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// 2 artanh((m - 1) / (m + 1)) for a mantissa m near 1.
double natural_logarithm(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  auto exponent = static_cast<double>(static_cast<int64_t>(bits >> 52) - 1023);
  auto mantissa = std::bit_cast<double>((bits & ((uint64_t{1} << 52) - 1)) | uint64_t{1023} << 52);
  if (mantissa > 1.4142135623730951) mantissa /= 2, exponent += 1;
  const double z = (mantissa - 1) / (mantissa + 1), square = z * z;
  double sum = 0;
  for (int power = 23; power >= 1; power -= 2) sum = sum * square + 1.0 / power;
  return exponent * 0.6931471805599453 + 2 * z * sum;
}

int64_t draw(uint64_t& random, uint64_t every) {
  const double chance = static_cast<double>((next_random(random) >> 11) + 1) * 0x1p-53;
  return static_cast<int64_t>(-natural_logarithm(chance) * static_cast<double>(every)) + 1;
}

// By the series of exp where that converges at once; elsewhere exp(-x) is exp(-x / 2) squared.
double chosen_share(uint64_t size, uint64_t every) {
  constexpr double kNearlyAll = 40, kSmall = 0.25;
  double x = static_cast<double>(size) / static_cast<double>(every);
  if (x > kNearlyAll) return 1;
  int halvings = 0;
  for (; x > kSmall; ++halvings) x /= 2;
  double share = 0;
  for (int power = 14; power >= 1; --power) share = (1 - share) * x / power;
  for (; halvings != 0; --halvings) share *= 2 - share;
  return share;
}

}  // namespace rh::chance
