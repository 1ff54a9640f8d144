// Memory is there, but on its way back to the system.
#include <malloc.h>
#include <sys/resource.h>

#include <atomic>
#include <thread>

#include "held.h"

using namespace chaos;

namespace {

std::size_t address_space() {
  FILE* file = std::fopen("/proc/self/statm", "r");
  std::size_t pages = 0;
  NEED(file && std::fscanf(file, "%zu", &pages) == 1, "statm");
  std::fclose(file);
  return pages * 4096;
}

void limit(int resource, std::size_t bytes) {
  const rlimit most{bytes, RLIM_INFINITY};
  NEED(setrlimit(static_cast<__rlimit_resource>(resource), &most) == 0);
}

constexpr std::size_t kBlock = 200 * MiB;

void use_and_free(double pause, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    void* block = malloc(kBlock);
    NEED(block, "round %d", round);
    std::memset(block, round, kBlock);
    free(block);
    nap(pause);
  }
}

// REHEAP_DECAY_MS=40: the pauses end while the block is being given back.
SCENARIO(one_block_again_and_again_under_a_data_limit) {
  limit(RLIMIT_DATA, 2 * kBlock);
  for (int pause = 30; pause < 60; pause += 6) use_and_free(pause * 0.001, 1 + times(1));
  return 0;
}

SCENARIO(one_block_again_and_again_under_a_limit) {
  free(malloc(1));
  limit(RLIMIT_AS, address_space() + kBlock + kBlock / 2);
  for (int pause = 30; pause < 60; pause += 6) use_and_free(pause * 0.001, 1 + times(1));
  return 0;
}

// One thread gives memory back, another asks for it.
SCENARIO(allocate_while_another_trims) {
  limit(RLIMIT_DATA, 2 * kBlock);
  std::atomic<bool> stop{false};
  std::thread other([&stop] {
    while (!stop) malloc_trim(0);
  });
  use_and_free(0, 20 * times(1));
  stop = true;
  other.join();
  return 0;
}

}  // namespace
