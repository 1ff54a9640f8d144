#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <vector>

#include "platform/platform.h"

namespace rh::platform {
namespace {

constexpr unsigned kAsleep = 1000;  // an attempt that sleeps

std::atomic<bool> g_goes_on{true};

std::atomic<uint64_t> g_count{0};

void* wait_in_vain(void*) {
  for (; g_goes_on; ++g_count) back_off(kAsleep);
  return nullptr;
}

pthread_t start_waiting() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 128 * 1024);
  pthread_t id;
  EXPECT_EQ(pthread_create(&id, &attributes, wait_in_vain, nullptr), 0);
  pthread_attr_destroy(&attributes);
  return id;
}

// A load makes it fewer, never more. While they are started it is more.
TEST(BackOff, ManyThatWaitComeBackNoMoreOftenThanFew) {
  constexpr uint64_t kMostInAMillisecond = 300;  // 400 sleep 6 ms each, with which it is 66
  std::vector<pthread_t> ids;
  while (ids.size() < 400) ids.push_back(start_waiting());
  while (g_count < ids.size()) back_off(kAsleep);
  const uint64_t begin = now_ms(), before = g_count;
  while (now_ms() < begin + 500) back_off(kAsleep);
  const uint64_t all = g_count - before, took = now_ms() - begin + 1;
  g_goes_on = false;
  for (pthread_t id : ids) pthread_join(id, nullptr);
  EXPECT_LT(all, took * kMostInAMillisecond);
}

}  // namespace
}  // namespace rh::platform
