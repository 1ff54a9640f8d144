// The dynamic loader: libraries that allocate as they are loaded and unloaded, and its lock, which the heap never
// needs.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "support/library.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

// The other end of waiting_plugin: runs inside dlopen, with the loader's lock held.
namespace {
std::atomic<int> plugin_phase{0};  // 1: inside the constructor, 2: the other threads are done
bool waited_in_vain = false;
}  // namespace

extern "C" __attribute__((visibility("default"))) void waiting_plugin_entered() {
  plugin_phase = 1;
  waited_in_vain = !eventually(8, [] { return plugin_phase == 2; });
}

namespace {

const char* plugin() { return std::getenv("CONTRACT_PLUGIN"); }
const char* waiting_plugin() { return std::getenv("CONTRACT_WAITING_PLUGIN"); }

using Make = char*(std::size_t);

SCENARIO(load_thousand_times) {
  std::size_t early = 0;
  std::vector<char*> left;
  for (int round = 0; round < rounds(1000); ++round) {
    void* library = dlopen(plugin(), round % 2 ? RTLD_NOW : RTLD_LAZY | RTLD_GLOBAL);
    NEED(library, "%s", dlerror());
    auto* make = reinterpret_cast<Make*>(dlsym(library, "plugin_make"));
    NEED(make);
    char* block = make(3000);
    NEED(block);
    fill(block, 3000, static_cast<std::uint64_t>(round));
    left.push_back(block);
    NEED(dlclose(library) == 0);
    NEED(dlopen(plugin(), RTLD_NOLOAD | RTLD_NOW) == nullptr, "the plugin stays loaded");
    if (left.size() > 20) {
      // Allocated by a library that has been unloaded.
      for (std::size_t at = 0; at < left.size(); ++at) {
        const auto maker = static_cast<std::uint64_t>(round) + 1 - left.size() + at;
        NEED(intact(left[at], 3000, maker));
        free(left[at]);
      }
      left.clear();
    }
    if (round == rounds(1000) / 10) early = resident();
  }
  for (char* block : left) free(block);
  NEED(resident() < early + 4 * MiB, "%zu KiB after a tenth of the rounds, %zu after all", early / KiB,
       resident() / KiB);
  return 0;
}

TEST(Loader, PluginLoadedAThousandTimes) { EXPECT_SCENARIO("load_thousand_times"); }

SCENARIO(load_under_load) {
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (std::uint64_t at = 0; at < 3; ++at) {
    threads.emplace_back([&, at] {
      Random random(at);
      while (!done) {
        std::thread([&] {
          for (int block = 0; block < 100; ++block) free(malloc(random.size(MiB)));
        }).join();
      }
    });
  }
  for (int round = 0; round < rounds(100); ++round) {
    void* library = dlopen(plugin(), RTLD_NOW);
    NEED(library, "%s", dlerror());
    free(reinterpret_cast<Make*>(dlsym(library, "plugin_make"))(100));
    dlclose(library);
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  return 0;
}

TEST(Loader, PluginLoadedWhileThreadsComeAndGo) { EXPECT_SCENARIO("load_under_load"); }

// What a free does then, as starting the helper, may not make a thread by the C library: it would wait for the lock.
SCENARIO(variables_freed_with_the_stacks) {
  void* library = dlopen(std::getenv("CONTRACT_VARIABLES_PLUGIN"), RTLD_NOW);
  NEED(library, "%s", dlerror());
  auto* touch = reinterpret_cast<void (*)()>(dlsym(library, "plugin_touch_variables"));
  NEED(touch);
  constexpr int kThreads = 16;  // with more stacks than the C library keeps
  for (int round = 0; round < 3; ++round) {
    Barrier all_there(kThreads);
    std::vector<std::thread> threads;
    for (int at = 0; at < kThreads; ++at)
      threads.emplace_back([&] {
        touch();
        all_there.arrive_and_wait();
      });
    for (std::thread& thread : threads) thread.join();
    nap(0.7);  // the helper ends
  }
  return 0;
}

TEST(Loader, VariablesOfThreadsAreFreedWithTheirStacks) {
  EXPECT_SCENARIO("variables_freed_with_the_stacks", {.environment = {{"REHEAP_DECAY_MS", "100"}}, .deadline = 15});
}

// ---- a library that has the core linked in, and goes with it --------------------------------------

struct OwnHeap {
  void* library = dlopen(std::getenv("CONTRACT_OWN_HEAP_PLUGIN"), RTLD_NOW);
  void* (*use)(bool keep) = nullptr;

  OwnHeap() {
    NEED(library, "%s", dlerror());
    use = reinterpret_cast<void* (*)(bool)>(dlsym(library, "plugin_use_heap"));
    NEED(use);
  }
  void close() const {
    NEED(dlclose(library) == 0);
    NEED(!dlopen(std::getenv("CONTRACT_OWN_HEAP_PLUGIN"), RTLD_NOW | RTLD_NOLOAD), "it is still there");
  }
};

// The C library keeps a list of the robust mutexes that a thread holds, and writes to the first when there is another.
void lock_robust() {
  pthread_mutexattr_t robust;
  pthread_mutexattr_init(&robust);
  pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_t mutex;
  NEED(pthread_mutex_init(&mutex, &robust) == 0);
  NEED(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == 0);
  pthread_mutex_destroy(&mutex);
}

SCENARIO(own_heap_is_unloaded) {
  for (const bool keep : {false, true}) {
    const OwnHeap own;
    Barrier used(2), closed(2);
    void* kept = nullptr;
    std::thread other([&] {
      kept = own.use(keep);
      used.arrive_and_wait();
      closed.arrive_and_wait();
      lock_robust();
    });
    used.arrive_and_wait();
    own.use(false);
    own.close();
    closed.arrive_and_wait();
    other.join();
    lock_robust();
    for (int at = 0; keep && at < 100; ++at) NEED(static_cast<char*>(kept)[at] == 1);
  }
  return 0;
}

TEST(Loader, LibraryWithItsOwnHeapIsUnloaded) { EXPECT_SCENARIO("own_heap_is_unloaded"); }

std::size_t address_space() {
  FILE* file = std::fopen("/proc/self/statm", "r");
  std::size_t pages = 0;
  NEED(file && std::fscanf(file, "%zu", &pages) == 1);
  std::fclose(file);
  return pages * 4 * KiB;
}

// Its window of address space, which other libraries need as well, goes with it.
SCENARIO(own_heap_is_loaded_again_and_again) {
  std::size_t early = 0;
  for (int round = 0; round < rounds(200); ++round) {
    const OwnHeap own;
    own.use(false);
    own.close();
    if (round == rounds(200) / 10) early = address_space();
  }
  NEED(address_space() < early + 16 * MiB, "%zu MiB more", (address_space() - early) / MiB);
  return 0;
}

TEST(Loader, LibraryWithItsOwnHeapIsLoadedAgainAndAgain) { EXPECT_SCENARIO("own_heap_is_loaded_again_and_again"); }

// What that keeps from use goes too.
TEST(Loader, LibraryWithItsOwnHardenedHeapIsLoadedAgainAndAgain) {
  const char* plugin = std::getenv("CONTRACT_OWN_HARDENED_HEAP_PLUGIN");
  if (plugin == nullptr) GTEST_SKIP() << "the hardened build is not here";
  EXPECT_SCENARIO("own_heap_is_loaded_again_and_again", {.environment = {{"CONTRACT_OWN_HEAP_PLUGIN", plugin}}});
}

void* use_heap(void*) {
  for (std::size_t size = 1; size < 3 * MiB; size = size * 3 / 2 + 1) {
    void* block = malloc(size);
    NEED(block, "%zu", size);
    block = realloc(block, size * 2);
    NEED(block, "%zu", size);
    free(block);
    free(aligned_alloc(64, size));
    free(calloc(1, size));
  }
  return nullptr;
}

// Some versions of the C library take the loader lock to start a thread, so they are started before, and wait.
std::atomic<bool> inside{false};

void* use_heap_inside(void*) {
  while (!inside) nap(0.002);
  return use_heap(nullptr);
}

SCENARIO(first_malloc_while_loading) {
  pthread_t waiting[3];
  for (pthread_t& id : waiting) NEED(pthread_create(&id, nullptr, use_heap_inside, nullptr) == 0);
  std::atomic<bool> loaded{false};
  std::thread loader([&] {
    void* library = dlopen(waiting_plugin(), RTLD_NOW);
    NEED(library, "%s", dlerror());
    loaded = true;
  });
  while (plugin_phase != 1) nap(0.002);
  inside = true;
  // Their exit is part of the test: the heap's thread cleanup must not need the loader either.
  for (pthread_t id : waiting) pthread_join(id, nullptr);
  NEED(!loaded);
  plugin_phase = 2;
  loader.join();
  NEED(!waited_in_vain);
  return 0;
}

TEST(Loader, FirstUseAndExitOfThreadsWhileAnotherLoads) {
  EXPECT_SCENARIO("first_malloc_while_loading", {.deadline = 12});
}

}  // namespace
