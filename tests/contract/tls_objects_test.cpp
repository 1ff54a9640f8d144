// Allocates in the destructors of a thread's own C++ objects.
#include <gtest/gtest.h>
#include <pthread.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/process.h"
#include "support/scenario.h"
#include "support/teardown.h"

using namespace contract;

namespace {

struct Holder {
  std::vector<std::string> texts;
  std::unique_ptr<char[]> bytes;
  ~Holder() {
    for (std::size_t at = 0; at < texts.size(); ++at) NEED(texts[at] == std::string(at * 10, 'h'));
    texts.emplace_back(5000, 'x');
    bytes.reset(new char[60000]);
    use_heap();
  }
};

thread_local Holder holder;

void fill_holder() {
  for (std::size_t at = 0; at < 40; ++at) holder.texts.emplace_back(at * 10, 'h');
}

TEST(Tls, ThreadLocalObjectsAllocateInTheirDestructors) {
  for (int at = 0; at < 200; ++at) std::thread(fill_holder).join();
}

SCENARIO(thread_local_at_main_exit) {
  fill_holder();
  pthread_key_t key;
  NEED(pthread_key_create(&key, destroy_value) == 0);
  pthread_setspecific(key, make_value(key, 0));
  return 0;
}

SCENARIO(thread_local_at_main_pthread_exit) {
  fill_holder();
  pthread_key_t key;
  NEED(pthread_key_create(&key, destroy_value) == 0);
  pthread_setspecific(key, make_value(key, 0));
  std::thread([] {
    nap(0.05);
    fill_holder();
    use_heap();
  }).detach();
  pthread_exit(nullptr);
  return 1;
}

TEST(Tls, ThreadLocalObjectsOfTheMainThread) {
  EXPECT_SCENARIO("thread_local_at_main_exit");
  EXPECT_SCENARIO("thread_local_at_main_pthread_exit");
}

// What is allocated after the allocator's own thread cleanup must not leak with each thread.
SCENARIO(teardown_does_not_leak) {
  pthread_key_t key;
  NEED(pthread_key_create(&key, destroy_value) == 0);
  std::size_t early = 0;
  for (int at = 0; at < 2000; ++at) {
    std::thread([&] {
      fill_holder();
      pthread_setspecific(key, make_value(key, 0));
    }).join();
    if (at == 500) early = resident();
  }
  NEED(resident() < early + 6 * MiB, "%zu KiB after 500 threads, %zu after 2,000", early / KiB, resident() / KiB);
  return 0;
}

TEST(Tls, TeardownDoesNotLeak) { EXPECT_SCENARIO("teardown_does_not_leak"); }

}  // namespace
