// Allocates while a thread's data is being torn down, through keys and C++ objects.
#include <gtest/gtest.h>
#include <limits.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/library.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"
#include "support/teardown.h"

using namespace contract;

namespace {

void with_keys(bool heap_first) {
  pthread_key_t keys[3];
  for (pthread_key_t& key : keys) ASSERT_EQ(pthread_key_create(&key, destroy_value), 0);
  rounds_seen = 0;
  for (int at = 0; at < 100; ++at) {
    std::thread([&] {
      if (heap_first) use_heap();
      for (pthread_key_t key : keys) pthread_setspecific(key, make_value(key, 0));
    }).join();
  }
  EXPECT_EQ(rounds_seen.load(), 100 * 3 * kRounds);
  for (pthread_key_t key : keys) pthread_key_delete(key);
}

TEST(Tls, KeyDestructorsAllocateInEveryRound) { with_keys(false); }
TEST(Tls, KeyDestructorsAllocateInEveryRoundAfterUse) { with_keys(true); }

// A thread that first uses the heap in a destructor.
SCENARIO(first_use_in_destructor) {
  static pthread_key_t key;
  static std::atomic<int> runs{0};
  NEED(pthread_key_create(&key, [](void*) {
         use_heap();
         ++runs;
       }) == 0);
  for (int at = 0; at < 50; ++at) {
    pthread_t id;
    NEED(pthread_create(
             &id, nullptr,
             [](void*) -> void* {
               pthread_setspecific(key, &key);
               return nullptr;
             },
             nullptr) == 0);
    pthread_join(id, nullptr);
  }
  NEED(runs == 50, "%d", runs.load());
  return 0;
}

TEST(Tls, FirstUseInADestructor) { EXPECT_SCENARIO("first_use_in_destructor"); }

}  // namespace
