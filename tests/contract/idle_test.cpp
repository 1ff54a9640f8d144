// When the whole process goes idle, free memory returns to the OS within two seconds, by itself, and no thread stays
// for it. These promises are reheap's own: glibc's heap breaks them, and serves as the broken library here.
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "idle.h"
#include "support/library.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

constexpr double kPromised = 2.0;

// Waits until at most a tenth of `freed` is left above `before`, and returns how long it took.
void check_returned(const char* what, std::size_t before, std::size_t full) {
  const double idle_since = seconds();
  NEED(full > before, "nothing was held");
  const std::size_t freed = full - before;
  const bool back = eventually(patience(8), [&] { return resident() <= before + freed / 10; });
  const double took = seconds() - idle_since;
  const std::size_t left = resident() > before ? resident() - before : 0;
  std::printf("%s: of %zu MiB %.1f %% left %.2f s after\n", what, freed / MiB,
              100.0 * static_cast<double>(left) / static_cast<double>(freed), took);
  NEED(back, "of %zu MiB %zu stay", freed / MiB, left / MiB);
  NEED(took <= kAllowed, "took %.2f s, promised %.1f", took, kPromised);
}

struct Task {
  std::size_t bytes;
  std::size_t least;
  std::size_t most;
};

// Four threads allocate and free as the task says, then sleep until released, as worker pools do.
class Workers {
 public:
  enum class Free { own, neighbours };

  Workers(const Task& task, Free whose) : blocks_(4), done_(5) {
    Barrier taken(5);
    Barrier measured(5);
    for (std::size_t at = 0; at < 4; ++at) {
      threads_.emplace_back([&, at] {
        take(task, at);
        taken.arrive_and_wait();
        measured.arrive_and_wait();
        free_all(blocks_[whose == Free::own ? at : (at + 1) % 4]);
        done_.arrive_and_wait();
        while (!released_) nap(0.02);
      });
    }
    taken.arrive_and_wait();
    full_ = resident();
    measured.arrive_and_wait();
    done_.arrive_and_wait();
  }

  ~Workers() {
    released_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

  std::size_t full() const { return full_; }

 private:
  void take(const Task& task, std::size_t seed) {
    Random random(seed);
    for (std::size_t held = 0; held < task.bytes / 4;) {
      const std::size_t size = task.least + random.below(task.most - task.least + 1);
      auto* block = static_cast<char*>(malloc(size));
      NEED(block, "%zu", size);
      std::memset(block, 1, size);
      std::memcpy(block, &heads_[seed], sizeof(void*));
      heads_[seed] = block;
      held += size;
    }
    blocks_[seed] = heads_[seed];
  }

  // The blocks are chained through their first words: nothing else is allocated meanwhile.
  static void free_all(char* block) {
    while (block) {
      char* next;
      std::memcpy(&next, block, sizeof next);
      free(block);
      block = next;
    }
  }

  char* heads_[4] = {};
  std::vector<char*> blocks_;
  Barrier done_;
  std::atomic<bool> released_{false};
  std::size_t full_ = 0;
  std::vector<std::thread> threads_;
};

constexpr std::size_t kSmallBytes = narrow ? 260 * MiB : 520 * MiB;

int idle_after(const char* what, const Task& task, Workers::Free whose) {
  const std::size_t before = resident();
  const Workers workers(task, whose);
  check_returned(what, before, workers.full());
  return 0;
}

SCENARIO(idle_small) { return idle_after("small", {kSmallBytes, 16, 256}, Workers::Free::own); }
SCENARIO(idle_mixed) { return idle_after("mixed", {200 * MiB, 16, 60 * KiB}, Workers::Free::own); }
SCENARIO(idle_large) { return idle_after("large", {300 * MiB, MiB, 20 * MiB}, Workers::Free::own); }
// Where slabs return no pages (Windows) each thread's last batches keep some 6 MiB of slabs, whatever was freed.
#if defined(_WIN64)
constexpr std::size_t kCrossBytes = 320 * MiB;
#else
constexpr std::size_t kCrossBytes = 200 * MiB;
#endif

SCENARIO(idle_cross) {
  return idle_after("freed by another thread", {kCrossBytes, 16, 2000}, Workers::Free::neighbours);
}

// In random order: consecutive frees are scattered, so nobody can send much of one slab at once. `keeps` is what may
// stay however much it was.
int idle_after_scattered(std::size_t count, std::size_t keeps) {
  std::vector<void*> blocks(count);
  for (void*& block : blocks) block = &blocks;
  const std::size_t before = resident();
  for (void*& block : blocks) {
    block = malloc(200);
    std::memset(block, 1, 200);
  }
  Random random(7);
  for (std::size_t at = blocks.size() - 1; at > 0; --at) std::swap(blocks[at], blocks[random.below(at + 1)]);
  const std::size_t full = resident();
  std::thread([&blocks] {
    for (void* block : blocks) free(block);
  }).join();
  check_returned("freed by another thread, scattered", before + keeps, full);
  return 0;
}

SCENARIO(idle_scattered) { return idle_after_scattered(narrow ? 300000 : 1000000, 0); }

// What empties the slabs comes with the last frees.
SCENARIO(idle_scattered_little) { return idle_after_scattered(75000, 3 * MiB); }

SCENARIO(idle_single_thread) {
  const std::size_t before = resident();
  std::vector<void*> blocks;
  blocks.reserve(200000);
  for (int at = 0; at < 200000; ++at) {
    blocks.push_back(malloc(500));
    std::memset(blocks.back(), 1, 500);
  }
  const std::size_t full = resident();
  for (void* block : blocks) free(block);
  blocks.clear();
  check_returned("one thread", before + 2 * MiB, full);
  return 0;
}

// Threads free at their end; only the main thread is left, asleep.
SCENARIO(idle_after_threads_ended) {
  const std::size_t before = resident();
  std::size_t full = 0;
  {
    const Workers workers({200 * MiB, 16, 1000}, Workers::Free::own);
    full = workers.full();
  }
  check_returned("threads ended", before, full);
  return 0;
}

TEST(Idle, MemoryGoesBack) {
  expect_scenarios({"idle_small", "idle_mixed", "idle_large", "idle_cross", "idle_scattered", "idle_scattered_little",
                    "idle_single_thread", "idle_after_threads_ended"});
}

// ---- the thread that returns it ----------------------------------------------------------------

SCENARIO(no_thread_after_little_work) {
  NEED(threads() == 1, "%d at the start", threads());
  for (int at = 0; at < 1000; ++at) free(malloc(static_cast<std::size_t>(at)));
  std::vector<void*> kept;
  for (int at = 0; at < 200; ++at) kept.push_back(malloc(64));
  nap(0.3);
  NEED(threads() == 1, "%d after little work", threads());
  for (void* block : kept) free(block);
  nap(0.3);
  NEED(threads() == 1, "%d after little was freed", threads());
  return 0;
}

SCENARIO(no_thread_once_returned) {
  const std::size_t before = resident();
  for (int round = 0; round < 2; ++round) {
    free_much();
    NEED(eventually(4, [&] { return resident() < before + 8 * MiB; }), "%zu MiB stay", (resident() - before) / MiB);
    NEED(eventually(6, [] { return threads() == 1; }), "%d threads are left", threads());
  }
  return 0;
}

// The thread whose free started the helper ends. Its stack, with its thread data, is unmapped: it is too large for the
// C library to cache.
SCENARIO(starter_of_the_helper_ends) {
  const std::size_t before = resident();
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 * MiB);
  for (int round = 0; round < 3; ++round) {
    pthread_t id;
    NEED(pthread_create(
             &id, &attributes,
             [](void*) -> void* {
               free_much();
               return nullptr;
             },
             nullptr) == 0);
    pthread_join(id, nullptr);
    NEED(eventually(4, [&] { return resident() < before + 8 * MiB; }), "%zu MiB stay", (resident() - before) / MiB);
    NEED(eventually(6, [] { return threads() == 1; }), "%d threads are left", threads());
  }
  return 0;
}

TEST(Idle, ThreadLivesOnlyWhileThereIsSomethingToReturn) {
  expect_scenarios({"no_thread_after_little_work", "no_thread_once_returned", "starter_of_the_helper_ends"});
}

}  // namespace
