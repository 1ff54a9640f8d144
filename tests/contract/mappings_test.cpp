// No mappings left: a limit of Linux that no other test reaches.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>

#include "support/chain.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

// Uses up the kernel's count of mappings, so that whatever would split one fails.
int take_all_mappings() {
  const std::size_t page = 4096;
  int taken = 0;
  for (; taken < 400000; ++taken) {
    const int protection = taken % 2 ? PROT_READ : PROT_READ | PROT_WRITE;
    if (mmap(nullptr, page, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) break;
  }
  return taken;
}

SCENARIO(no_mappings_left) {
  Chain chain;
  Chain kept;
  Random random(31);
  while (chain.bytes() + kept.bytes() < 150 * MiB) {
    const std::size_t size = sizeof(Link) + random.size(random.one_in(50) ? 20 * MiB : 256 * KiB);
    void* block = malloc(size);
    NEED(block);
    (random.one_in(2) ? chain : kept).add(block, size);
  }
  const int taken = take_all_mappings();
  if (taken == 400000) return 77;  // this kernel's bound is too far away to reach
  chain.free_until(0);
  nap(1.2);  // whatever is returned to the OS by time fails now
  for (int round = 0; round < 3000; ++round) {
    const std::size_t size = sizeof(Link) + random.size(random.one_in(50) ? 20 * MiB : 256 * KiB);
    errno = 0;
    void* block = malloc(size);
    NEED(block || errno == ENOMEM, "errno is %d", errno);
    if (block) chain.add(block, size);
    if (chain.bytes() > 60 * MiB) chain.free_until(20 * MiB);
  }
  chain.free_until(0);
  kept.free_until(0);
  return 0;
}

TEST(LimitsOnce, NoMappingsLeft) {
  const Outcome outcome = run("no_mappings_left");
  if (outcome.code == 77) GTEST_SKIP() << "vm.max_map_count is too high to be reached";
  EXPECT_TRUE(outcome.succeeded()) << outcome.describe();
}

}  // namespace
