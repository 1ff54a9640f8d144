// Threads that come and go, and blocks that one allocates and another frees.
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "support/held.h"
#include "support/library.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

// ---- coming and going --------------------------------------------------------------------------

pthread_t launch(void* (*body)(void*), void* argument) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 128 * KiB);
  pthread_t id;
  NEED(pthread_create(&id, &attributes, body, argument) == 0);
  pthread_attr_destroy(&attributes);
  return id;
}

// Leaves ten blocks behind and frees the rest, so that no page is entirely free.
void* leave_some(void* left) {
  auto* kept = static_cast<std::vector<Held>*>(left);
  std::vector<Held> own;
  Random random(kept->size() + 5);
  for (int at = 0; at < 50; ++at) own.push_back(Held(random.size(2 * KiB), random.next()));
  for (std::size_t at = 0; at < own.size(); ++at)
    if (at % 5 == 0)
      kept->push_back(own[at]);
    else
      own[at].drop();
  return nullptr;
}

SCENARIO(ten_thousand_threads) {
  std::vector<Held> left;
  left.reserve(1000);
  std::size_t early = 0;
  for (int at = 0; at < rounds(10000); ++at) {
    pthread_join(launch(leave_some, &left), nullptr);
    if (left.size() >= 500) {
      for (Held& held : left) held.drop();
      left.clear();
    }
    if (at == rounds(10000) / 10) early = resident();
  }
  for (Held& held : left) held.drop();
  NEED(resident() < early + 6 * MiB, "%zu KiB after a tenth of the threads, %zu after all", early / KiB,
       resident() / KiB);
  return 0;
}

TEST(Threads, TenThousandInTurnDoNotGrow) { EXPECT_SCENARIO("ten_thousand_threads"); }

// The blocks they all leave are freed only at the end; a thread that made none of them must then be able to reuse the
// memory.
SCENARIO(reuse_of_the_dead) {
  const std::size_t start = resident();
  for (int round = 0; round < 5; ++round) {
    std::vector<Held> left;
    left.reserve(4000);
    for (int at = 0; at < 100; ++at) {
      pthread_join(launch(
                       [](void* into) -> void* {
                         for (std::size_t block = 0; block < 40; ++block)
                           static_cast<std::vector<Held>*>(into)->push_back(Held(4000, block));
                         return nullptr;
                       },
                       &left),
                   nullptr);
    }
    for (Held& held : left) held.drop();
  }
  NEED(peak_resident() < start + 40 * MiB, "peak %zu KiB for 16 MB, five times", (peak_resident() - start) / KiB);
  return 0;
}

TEST(Threads, MemoryOfTheDeadIsReused) { EXPECT_SCENARIO("reuse_of_the_dead"); }

SCENARIO(two_hundred_at_once) {
  for (int round = 0; round < 3; ++round) {
    Barrier together(200);
    struct Own {
      Barrier* together;
      std::vector<Held>* mine;
      std::vector<Held>* others;
    };
    std::vector<std::vector<Held>> made(200);
    std::vector<Own> owns;
    for (std::size_t at = 0; at < 200; ++at) owns.push_back({&together, &made[at], &made[(at + 77) % 200]});
    std::vector<pthread_t> ids;
    for (Own& own : owns) {
      ids.push_back(launch(
          [](void* argument) -> void* {
            const Own& here = *static_cast<Own*>(argument);
            Random random(reinterpret_cast<std::uintptr_t>(&here));
            for (int at = 0; at < 100; ++at) here.mine->push_back(Held(random.size(3000), random.next()));
            here.together->arrive_and_wait();
            for (Held& held : *here.others) held.drop();
            return nullptr;
          },
          &own));
    }
    for (pthread_t id : ids) pthread_join(id, nullptr);
  }
  return 0;
}

TEST(Threads, TwoHundredAtOnceFreeEachOthersBlocks) { EXPECT_SCENARIO("two_hundred_at_once"); }

// Figures per thread: small at rest, whatever the number.
SCENARIO(threads_at_rest) {
  static std::atomic<bool> done{false};
  static std::atomic<int> born{0};
  static std::atomic<bool> go{false};
  static std::atomic<int> ready{0};
  std::vector<pthread_t> ids;
  for (int at = 0; at < 64; ++at) {
    ids.push_back(launch(
        [](void*) -> void* {
          ++born;
          while (!go) nap(0.005);
          for (std::size_t size = 16; size <= 512; size += 16) free(malloc(size));
          ++ready;
          while (!done) nap(0.005);
          return nullptr;
        },
        nullptr));
  }
  while (born < 64) nap(0.005);
  // The stack does not belong to the heap.
  const std::size_t before = resident();
  go = true;
  while (ready < 64) nap(0.005);
  const std::size_t each = (resident() - before) / 64;
  done = true;
  for (pthread_t id : ids) pthread_join(id, nullptr);
  std::printf("a thread that used 32 sizes holds %zu KiB\n", each / KiB);
  NEED(each < 400 * KiB, "%zu KiB", each / KiB);
  return 0;
}

TEST(Threads, HoldLittleAtRest) { EXPECT_SCENARIO("threads_at_rest"); }

// ---- from hand to hand -------------------------------------------------------------------------

// A bounded queue: the maximum in transit at once is known.
class Queue {
 public:
  explicit Queue(std::size_t most) : most_(most) {}

  void put(const Held& held) {
    std::unique_lock guard(lock_);
    room_.wait(guard, [&] { return held_.size() < most_; });
    held_.push_back(held);
    filled_.notify_one();
  }

  Held get() {
    std::unique_lock guard(lock_);
    filled_.wait(guard, [&] { return !held_.empty(); });
    const Held held = held_.front();
    held_.pop_front();
    room_.notify_one();
    return held;
  }

 private:
  const std::size_t most_;
  std::mutex lock_;
  std::condition_variable room_;
  std::condition_variable filled_;
  std::deque<Held> held_;
};

// One thread only allocates, the other only frees: at least 50 MB pass, at most 5 MB at a time.
int one_way(std::size_t most_size, int count) {
  Queue queue(most_size < 10000 ? 1000 : 50);
  const std::size_t before = resident();
  std::size_t early = 0;
  std::thread consumer([&] {
    for (int at = 0; at < count; ++at) {
      Held held = queue.get();
      held.drop();
      if (at == count / 5) early = resident();
    }
  });
  Random random(most_size);
  for (int at = 0; at < count; ++at) queue.put(Held(1 + random.below(most_size), random.next()));
  consumer.join();
  std::printf("one way, up to %zu bytes: %zu KiB after a fifth, %zu at the peak\n", most_size, (early - before) / KiB,
              (peak_resident() - before) / KiB);
  NEED(peak_resident() < before + 24 * MiB, "peak %zu KiB", (peak_resident() - before) / KiB);
  return 0;
}

SCENARIO(one_way_small) { return one_way(1000, rounds(400000)); }
SCENARIO(one_way_mixed) { return one_way(200 * KiB, rounds(8000)); }

TEST(CrossThread, ConsumerThatOnlyFreesSmall) { EXPECT_SCENARIO("one_way_small"); }
TEST(CrossThread, ConsumerThatOnlyFreesMixed) { EXPECT_SCENARIO("one_way_mixed"); }

// Each thread allocates for the next and frees for the previous one: everybody's inbox is in use at once.
SCENARIO(ring) {
  constexpr std::size_t kThreads = 6;
  const int kRounds = rounds(20000);
  std::deque<Queue> queues;
  for (std::size_t at = 0; at < kThreads; ++at) queues.emplace_back(200);
  const std::size_t before = resident();
  std::vector<std::thread> threads;
  for (std::size_t at = 0; at < kThreads; ++at) {
    threads.emplace_back([&, at] {
      Random random(at);
      // Offset by half a queue, so that no two threads wait for each other.
      for (int round = 0; round < kRounds + 100; ++round) {
        if (round < kRounds) queues[(at + 1) % kThreads].put(Held(1 + random.below(4000), random.next()));
        if (round >= 100) {
          Held held = queues[at].get();
          held.drop();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  NEED(peak_resident() < before + 40 * MiB, "peak %zu KiB", (peak_resident() - before) / KiB);
  return 0;
}

TEST(CrossThread, Ring) { EXPECT_SCENARIO("ring"); }

TEST(CrossThread, ReallocOfAnothersBlock) {
  for (const std::size_t size : {10, 1000, 40000, 2000000}) {
    for (const std::size_t wanted : {5, 900, 70000, 5000000}) {
      Held held;
      std::thread([&] { held = Held(size, 3); }).join();
      ASSERT_TRUE(held.resize(wanted)) << size << " to " << wanted;
      std::thread([&] { held.drop(); }).join();
    }
  }
}

TEST(CrossThread, OwnerIsDead) {
  std::vector<Held> all;
  for (int round = 0; round < 50; ++round) {
    std::thread([&] {
      Random random(static_cast<std::uint64_t>(round));
      for (int at = 0; at < 400; ++at) all.push_back(Held(random.size(20000), random.next()));
    }).join();
    // Half are freed by this thread, half by yet another, which then ends too.
    const auto drop_half = [&] {
      for (std::size_t at = all.size() / 2; at < all.size(); ++at) all[at].drop();
      all.resize(all.size() / 2);
    };
    drop_half();
    std::thread(drop_half).join();
  }
  for (Held& held : all) held.drop();
}

TEST(CrossThread, OwnerDiesWhileOthersFree) {
  for (int round = 0; round < 60; ++round) {
    std::vector<Held> made;
    Barrier ready(3);
    std::thread owner([&] {
      for (std::size_t at = 0; at < 3000; ++at) made.push_back(Held(at % 300 + 1, at));
      ready.arrive_and_wait();
    });
    const auto free_part = [&](std::size_t part) {
      ready.arrive_and_wait();
      for (std::size_t at = part; at < made.size(); at += 2) made[at].drop();
    };
    std::thread first(free_part, 0);
    std::thread second(free_part, 1);
    owner.join();
    first.join();
    second.join();
  }
}

// An owner's inbox is drained only by the owner, or by another thread that notices that it sleeps.
constexpr std::size_t kAsleep = narrow ? 100 * MiB : 300 * MiB;
constexpr std::size_t kBlock = 1000;

std::vector<void*> take_many(std::size_t bytes) {
  std::vector<void*> blocks;
  blocks.reserve(bytes / kBlock);
  for (std::size_t at = 0; at < bytes / kBlock; ++at) {
    blocks.push_back(malloc(kBlock));
    *static_cast<std::size_t*>(blocks.back()) = at;
  }
  return blocks;
}

void drop_many(std::vector<void*>& blocks) {
  for (std::size_t at = 0; at < blocks.size(); ++at) {
    NEED(*static_cast<std::size_t*>(blocks[at]) == at, "block %zu", at);
    free(blocks[at]);
  }
  blocks.clear();
}

SCENARIO(owner_asleep) {
  const std::size_t before = resident();
  Barrier phase(2);
  std::atomic<bool> done{false};
  std::vector<void*> blocks;
  std::thread owner([&] {
    blocks = take_many(kAsleep);
    phase.arrive_and_wait();
    while (!done) nap(0.02);
  });
  phase.arrive_and_wait();
  for (int round = 0; round < 4; ++round) {
    drop_many(blocks);
    blocks = take_many(kAsleep);
  }
  const std::size_t peak = peak_resident() - before;
  std::printf("owner asleep: peak %zu MiB for %zu MiB freed and made again 4 times\n", peak / MiB, kAsleep / MiB);
  NEED(peak < kAsleep * 9 / 4, "peak %zu MiB for %zu", peak / MiB, kAsleep / MiB);
  drop_many(blocks);
  blocks.shrink_to_fit();
  if (on_reheap()) {
    const double freed = seconds();
    const bool back = eventually(5, [&] { return resident() < before + kAsleep / 10; });
    std::printf("owner asleep: %zu MiB left %.2f s after all was freed\n", (resident() - before) / MiB,
                seconds() - freed);
    NEED(back, "%zu MiB stay", (resident() - before) / MiB);
    NEED(seconds() - freed < 3.0, "took %.2f s", seconds() - freed);
  }
  done = true;
  owner.join();
  return 0;
}

TEST(CrossThread, OwnerIsAsleep) { EXPECT_SCENARIO("owner_asleep"); }

}  // namespace
