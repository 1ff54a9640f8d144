#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <vector>

#include "platform/platform.h"

namespace rh::platform {
namespace {

constexpr unsigned kAsleep = 1000;  // an attempt that sleeps

std::atomic<bool> g_goes_on{true};

void* wait_in_vain(void* count) {
  for (; g_goes_on; ++*static_cast<uint64_t*>(count)) back_off(kAsleep);
  return nullptr;
}

pthread_t start_waiting(uint64_t* count) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 128 * 1024);
  pthread_t id;
  EXPECT_EQ(pthread_create(&id, &attributes, wait_in_vain, count), 0);
  pthread_attr_destroy(&attributes);
  return id;
}

// A load makes it fewer, never more.
TEST(BackOff, ManyThatWaitComeBackNoMoreOftenThanFew) {
  constexpr uint64_t kMostInAMillisecond = 100;  // 400 that sleep 6 ms each, and some
  const uint64_t begin = now_ms();
  std::vector<uint64_t> counts(400);
  std::vector<pthread_t> ids;
  for (uint64_t& count : counts) ids.push_back(start_waiting(&count));
  while (now_ms() < begin + 500) back_off(kAsleep);
  g_goes_on = false;
  for (pthread_t id : ids) pthread_join(id, nullptr);
  uint64_t all = 0;
  for (uint64_t count : counts) all += count;
  EXPECT_LT(all, (now_ms() - begin + 1) * kMostInAMillisecond);
}

}  // namespace
}  // namespace rh::platform
