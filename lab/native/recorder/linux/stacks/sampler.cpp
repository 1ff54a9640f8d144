// The bytes from one chosen byte to the next have a geometric distribution, which has no memory: where a thread begins
// to count does not matter.

#include "linux/stacks/sampler.h"

#include <bit>

#include "stream/clock.h"
#include "stream/system.h"
#include "thread_slot.h"

namespace recorder {

constinit thread_local Sampler t_sampler{};

namespace {

constinit uint32_t g_every = 0;

uint64_t next_random(uint64_t& state) {  // Steele, Lea and Flood's SplitMix64 (2014)
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// Of 0 < x <= 1, as exact as a double is: 2 artanh((m - 1) / (m + 1)) for a mantissa m near 1. There is no libm here.
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

int64_t draw(uint64_t& random) {
  const double chance = static_cast<double>((next_random(random) >> 11) + 1) * 0x1p-53;
  return static_cast<int64_t>(-natural_logarithm(chance) * g_every) + 1;
}

void begin(Sampler& sampler) {
  sampler.generation = thread_slot().generation;
  sampler.random = system::time_of_day_nanoseconds() ^ system::process_id() << 40 ^
                   reinterpret_cast<uintptr_t>(&sampler) << 20 ^ ticks_now();
  sampler.left = draw(sampler.random);
}

}  // namespace

void set_sampling(uint32_t every_bytes) { g_every = every_bytes; }

bool sample_slowly(size_t size) {
  Sampler& sampler = t_sampler;
  if (g_every == 0) {
    sampler.left = 0;
    return true;
  }
  if (sampler.generation != thread_slot().generation || sampler.random == 0) {
    begin(sampler);
    return sample(size);
  }
  sampler.left = draw(sampler.random);
  return true;
}

}  // namespace recorder
