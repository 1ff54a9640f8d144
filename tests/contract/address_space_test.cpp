// Freed address space is available to others. Only a 32-bit process has too little of it.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "address_space.h"
#include "support/library.h"

using namespace contract;

namespace {

bool map(std::size_t size) {
  return mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED;
}

// From here on only memory that will be returned is left.
void take_the_rest() {
  for (std::size_t size = 256 * MiB; size >= MiB; size /= 2) {
    while (map(size)) {}
  }
}

int map_where_blocks_were(std::size_t survivors) {
  Blocks blocks;
  blocks.take(1900 * MiB);
  take_the_rest();
  blocks.free_all_but(survivors);
  NEED(map(512 * MiB), "at once");
  return 0;
}

void* sleep_on(void*) {
  for (;;) pause();
}

SCENARIO(map_beside_survivors) { return map_where_blocks_were(5); }

SCENARIO(map_beside_a_thread) {
  pthread_t thread;
  NEED(pthread_create(&thread, nullptr, sleep_on, nullptr) == 0);
  return map_where_blocks_were(0);
}

TEST(AddressSpace, WhatWasFreedCanBeMapped) {
  if (!narrow) GTEST_SKIP() << "a 64-bit process has enough";
  EXPECT_SCENARIO("map_beside_survivors");
  EXPECT_SCENARIO("map_beside_survivors", {.environment = {{"REHEAP_DECAY_MS", "0"}}});
  EXPECT_SCENARIO("map_beside_a_thread");
}

}  // namespace
