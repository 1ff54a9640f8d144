// Without libFuzzer: random inputs for SECONDS, each made from SEED and its number, so that a failure is found again.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <chrono>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr size_t kMostBytes = 2048;

double seconds_now() {
  using std::chrono::steady_clock;
  return std::chrono::duration<double>(steady_clock::now().time_since_epoch()).count();
}

std::vector<uint8_t> input(uint64_t seed, uint64_t number) {
  std::mt19937_64 random(seed * 1000003 + number);
  std::vector<uint8_t> bytes(random() % kMostBytes);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() >> 20);
  return bytes;
}

uint64_t g_seed = 1, g_number = 0;

void say_which() {
  fprintf(stderr, "fuzz: input %llu of seed %llu\n", static_cast<unsigned long long>(g_number),
          static_cast<unsigned long long>(g_seed));
}

}  // namespace

int main(int count, char** arguments) {
  double seconds = count > 1 ? strtod(arguments[1], nullptr) : 2;
  g_seed = count > 2 ? strtoull(arguments[2], nullptr, 10) : 1;
  if (count > 3 || seconds <= 0) {
    fprintf(stderr, "usage: %s [SECONDS [SEED]]\n", arguments[0]);
    return 2;
  }
  for (double end = seconds_now() + seconds; seconds_now() < end; ++g_number) {
    if (g_number % 64 == 0) {
      // Where a crash ends the process, the last of these lines tells from where to look.
      say_which();
    }
    std::vector<uint8_t> bytes = input(g_seed, g_number);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  printf("fuzz: %llu inputs\n", static_cast<unsigned long long>(g_number));
  return g_number == 0;
}
