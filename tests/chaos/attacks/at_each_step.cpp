// Runs a handler before every single instruction of a malloc or a free in turn: it forks, or changes the process's
// credentials.
#include <poll.h>

#include <atomic>
#include <thread>
#include <vector>

#include "held.h"
#include "stepping.h"

using namespace chaos;

namespace {

constinit thread_local bool in_child = false;
std::atomic<bool> stop{false};

void fork_here() {
  const pid_t child = fork();
  NEED(child >= 0, "fork");
  if (child == 0)
    in_child = true;
  else
    NEED(ended_well(child));
}

// Threads that share a heap would be handed the same block twice, which shows here.
void use_heap_in_threads() {
  std::vector<std::thread> threads;
  for (std::uint64_t at = 1; at <= 2; ++at) threads.emplace_back(use_heap, at);
  use_heap(9);
  for (std::thread& thread : threads) thread.join();
}

void churn(std::uint64_t seed) {
  Random random(seed);
  std::vector<Held> own(50);
  while (!stop) {
    Held& held = own[random.below(own.size())];
    if (held) held.drop();
    held.take(random.size(random.one_in(30) ? 200 * KiB : 8 * KiB), random.next());
  }
  for (Held& held : own)
    if (held) held.drop();
}

class Load {
 public:
  explicit Load(std::uint64_t count) {
    for (std::uint64_t at = 1; at <= count; ++at) threads_.emplace_back(churn, at);
  }
  ~Load() {
    stop = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::vector<std::thread> threads_;
};

// The first malloc of a thread, where it gets its heap.
SCENARIO(fork_at_each_step_of_a_first_malloc) {
  if (!kSteps) return kSkipped;
  const int stride = times(1) > 1 ? 1 : 2;
  bool more = true;
  for (int step = 1; more; step += stride) {
    std::thread([step, &more] {
      Held first;
      void* made = nullptr;
      more = interrupted_at(step, fork_here, [&made] { made = malloc(100); });
      first.hold(made, 100, 1);
      if (in_child) {
        use_heap_in_threads();
        first.drop();
        _exit(0);
      }
      first.drop();
    }).join();
  }
  return 0;
}

// The work that is stepped through: small blocks that empty their bin, slabs that fill and empty, large blocks.
struct Work {
  Held blocks[24];
  Held large;

  void prepare(std::uint64_t seed) {
    Random random(seed);
    for (Held& held : blocks) held.take(1 + random.below(6 * KiB), random.next());
    large.take(300 * KiB, seed);
  }

  // No checks: only the allocator's own instructions count. The block that is moved is short: a copy of a few thousand
  // bytes is one instruction that traps at each byte.
  void step(void** fresh) const {
    fresh[0] = malloc(1500);
    for (const Held& held : blocks) free(held.block);
    free(large.block);
    fresh[1] = malloc(20 * KiB);
    fresh[2] = realloc(fresh[0], 500 * KiB);
  }
};

// Runs `action` before each instruction of the work in turn, with this much free memory to be returned meanwhile.
void interrupt_work(void (*action)(), std::size_t much) {
  const int stride = times(1) > 1 ? 1 : 499;
  bool more = true;
  for (int step = 1; more; step += stride) {
    const auto seed = static_cast<std::uint64_t>(step);
    Work work;
    work.prepare(seed);
    free_much(much);
    Held others[8];
    for (Held& held : others) held.take(3 * KiB, seed);
    void* fresh[3] = {};
    more = interrupted_at(step, action, [&] { work.step(fresh); });
    if (in_child) use_heap_in_threads();
    for (Held& held : others) held.drop();
    free(fresh[1]);
    free(fresh[2]);
    if (in_child) _exit(0);
    use_heap(seed);
  }
}

SCENARIO(fork_at_each_step_beside_threads) {
  if (!kSteps) return kSkipped;
  const Load load(2);
  interrupt_work(fork_here, 0);
  return 0;
}

// By then the helper has looked for memory to return, and waits for the interrupted thread.
void set_user_later() {
  usleep(25000);
  NEED(setuid(getuid()) == 0);
}

SCENARIO(setuid_at_each_step_beside_threads) {
  if (!kSteps) return kSkipped;
  const Load load(1);
  interrupt_work(set_user_later, 4 * MiB);
  return 0;
}

void wait_here() { NEED(poll(nullptr, 0, 60) == 0); }

// Without other threads, so that memory is returned within the wait.
SCENARIO(wait_at_each_step) {
  if (!kSteps) return kSkipped;
  interrupt_work(wait_here, 4 * MiB);
  return 0;
}

}  // namespace
