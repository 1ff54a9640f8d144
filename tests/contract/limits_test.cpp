// Out of memory: NULL and ENOMEM, everything handed out stays intact, and allocation continues.
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "support/chain.h"
#include "support/library.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

std::size_t limit() { return memory_limit(); }

// Allocates blocks until one is refused. Stops by itself well above the limit: a heap that does not notice the limit
// must not take the machine down.
void exhaust(Chain& chain, Random& random, std::size_t most) {
  const std::size_t too_much = limit() * 2;
  for (;;) {
    const std::size_t size = sizeof(Link) + random.size(most);
    errno = 0;
    void* block = random.one_in(5) ? calloc(1, size) : malloc(size);
    if (!block) {
      NEED(errno == ENOMEM, "errno is %d", errno);
      return;
    }
    chain.add(block, size);
    NEED(chain.bytes() < too_much, "the limit of %zu MiB is not noticed", limit() / MiB);
  }
}

void check_service_when_full() {
  errno = 0;
  NEED(malloc(opaque(limit())) == nullptr);
  NEED(errno == ENOMEM);
  errno = 0;
  NEED(calloc(opaque(limit()), 2) == nullptr);
  NEED(errno == ENOMEM);
  NEED(::operator new(opaque(limit()), std::nothrow) == nullptr);
  bool thrown = false;
  try {
    ::operator delete(::operator new(opaque(limit())));
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  NEED(thrown);
}

// Freed memory can be allocated again; in other sizes too, where the heap does not fragment like glibc's.
void check_service_after(Chain& chain, Random& random, std::size_t freed, std::size_t most) {
  const std::size_t wanted = chain.bytes() + freed / 4;
  while (chain.bytes() < wanted) {
    const std::size_t size = sizeof(Link) + random.size(most);
    void* block = malloc(size);
    NEED(block, "%zu refused: %zu MiB held, %zu MiB were freed", size, chain.bytes() / MiB, freed / MiB);
    chain.add(block, size);
  }
  void* block = malloc(100);
  NEED(block);
  void* grown = realloc(block, opaque(limit()));
  NEED(grown == nullptr);
  free(opaque(block));
}

// MinGW's runtime allocates at a thread's first exception, and aborts when it cannot.
void throw_while_there_is_memory() {
  try {
    throw 0;
  } catch (int) {}
}

int exhaust_and_go_on(std::size_t most) {
  throw_while_there_is_memory();
  Chain chain;
  Random random(most);
  for (int round = 0; round < 2; ++round) {
    exhaust(chain, random, most);
    const std::size_t full = chain.bytes();
    NEED(full > limit() / 4, "only %zu of %zu MiB could be had", full / MiB, limit() / MiB);
    check_service_when_full();
    chain.check();
    chain.free_until(full / 2);
    check_service_after(chain, random, full / 2, on_reheap() ? 64 * KiB : most);
    chain.free_until(full / 8);
  }
  chain.free_until(0);
  // A 32-bit heap grows by pieces that need not be contiguous.
  void* part = malloc(limit() / (narrow ? 16 : 4));
  NEED(part || !on_reheap(), "nothing is held, and a part of the limit cannot be had");
  free(part);
  return 0;
}

SCENARIO(exhaust_tiny) { return exhaust_and_go_on(32); }
SCENARIO(exhaust_small) { return exhaust_and_go_on(4 * KiB); }
SCENARIO(exhaust_mixed) { return exhaust_and_go_on(2 * MiB); }
SCENARIO(exhaust_large) { return exhaust_and_go_on(40 * MiB); }

class Limits : public testing::TestWithParam<const char*> {};

TEST_P(Limits, AddressSpace) { EXPECT_SCENARIO(GetParam(), {.limits = {{Resource::memory, 120 * MiB}}}); }

TEST_P(Limits, DataSegment) {
  if (mode() != Mode::preload) GTEST_SKIP() << "the same code as preloaded";
  EXPECT_SCENARIO(GetParam(), {.limits = {{Resource::data, 80 * MiB}}});
}

INSTANTIATE_TEST_SUITE_P(Sizes, Limits,
                         testing::Values("exhaust_tiny", "exhaust_small", "exhaust_mixed", "exhaust_large"),
                         [](const auto& sizes) { return std::string(sizes.param).substr(8); });

TEST(LimitsOnce, VeryLittleAddressSpace) {
  EXPECT_SCENARIO("exhaust_small", {.limits = {{Resource::memory, 64 * MiB}}});
}

TEST(LimitsOnce, AmpleAddressSpace) {
  if (mode() != Mode::preload) GTEST_SKIP() << "the same code as preloaded";
  EXPECT_SCENARIO("exhaust_mixed", {.limits = {{Resource::memory, 400 * MiB}}});
}

// Only what is missing is taken from the OS.
SCENARIO(a_little_longer_than_what_was_freed) {
  for (std::size_t size = limit() / 2; size < limit() * 3 / 4; size += limit() / 20) {
    void* block = malloc(opaque(size));
    NEED(block, "%zu MiB", size / MiB);
    std::memset(block, 1, size);
    free(block);
  }
  return 0;
}

TEST(LimitsOnce, ALittleLongerThanWhatWasFreed) {
  if (sizeof(void*) == 4) GTEST_SKIP() << "what two pieces have is not one block there";
  EXPECT_SCENARIO("a_little_longer_than_what_was_freed", {.limits = {{Resource::memory, 400 * MiB}}});
}

SCENARIO(small_after_big_failure) {
  for (int round = 0; round < 1000; ++round) {
    errno = 0;
    NEED(malloc(opaque(limit() + static_cast<std::size_t>(round))) == nullptr);
    NEED(errno == ENOMEM);
    const std::size_t size = static_cast<std::size_t>(round) * 7 + 1;
    void* block = malloc(size);
    NEED(block, "%zu", size);
    fill(block, size, 1);
    if (round % 2) free(block);
  }
  return 0;
}

TEST(LimitsOnce, SmallRequestsAfterABigFailure) {
  EXPECT_SCENARIO("small_after_big_failure", {.limits = {{Resource::memory, 400 * MiB}}});
}

std::atomic<int> finished{0};

void* exhaust_in_thread(void* seed) {
  Random random(reinterpret_cast<std::uintptr_t>(seed));
  Chain chain;
  for (int round = 0; round < 3; ++round) {
    exhaust(chain, random, round % 2 ? 1000 : 100 * KiB);
    chain.check();
    chain.free_until(chain.bytes() / 2);
  }
  chain.free_until(0);
  finished.fetch_add(1);
  return nullptr;
}

SCENARIO(exhaust_in_four_threads) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 * KiB);
  pthread_t ids[4];
  for (std::uintptr_t at = 0; at < 4; ++at)
    NEED(pthread_create(&ids[at], &attributes, exhaust_in_thread, reinterpret_cast<void*>(at + 1)) == 0);
  for (pthread_t id : ids) pthread_join(id, nullptr);
  NEED(finished.load() == 4);
  Chain chain;
  Random random(9);
  while (chain.bytes() < limit() / 8) {
    const std::size_t size = sizeof(Link) + random.size(8 * KiB);
    void* block = malloc(size);
    NEED(block, "after all were freed, at %zu MiB", chain.bytes() / MiB);
    chain.add(block, size);
  }
  chain.free_until(0);
  return 0;
}

TEST(LimitsOnce, FourThreadsExhaustTogether) {
  EXPECT_SCENARIO("exhaust_in_four_threads", {.limits = {{Resource::memory, 250 * MiB}}});
}

// ---- new-handler -------------------------------------------------------------------------------

void* reserve = nullptr;
int handler_calls = 0;

void release_reserve() {
  ++handler_calls;
  if (!reserve) throw std::bad_alloc();
  free(reserve);
  reserve = nullptr;
}

SCENARIO(new_handler_frees) {
  reserve = malloc(limit() / 4);
  NEED(reserve);
  fill(reserve, limit() / 4, 1);
  std::set_new_handler(release_reserve);
  Chain chain;
  bool thrown = false;
  while (!thrown) {
    try {
      const std::size_t size = 200 * KiB;
      chain.add(handler_calls % 2 ? ::operator new(size) : ::operator new[](size), size);
      NEED(chain.bytes() < limit() * 2, "the limit is not noticed");
      if (!reserve) NEED(handler_calls >= 1);
    } catch (const std::bad_alloc&) {
      thrown = true;
    }
  }
  NEED(handler_calls == 2, "%d calls: one to free the reserve, one to give up", handler_calls);
  NEED(chain.bytes() > limit() / 4);
  chain.free_until(0);
  return 0;
}

TEST(LimitsOnce, NewHandlerThatFreesLeadsToSuccess) {
  EXPECT_SCENARIO("new_handler_frees", {.limits = {{Resource::memory, 400 * MiB}}});
}

}  // namespace
