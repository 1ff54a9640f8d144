// fork: the child's heap is consistent whatever the other threads were doing.
#include <gtest/gtest.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/held.h"
#include "support/library.h"
#include "support/process.h"
#include "support/scenario.h"

extern char** environ;

using namespace contract;

namespace {

// Blocks that all threads exchange: those a child finds here were made by threads it does not have.
struct Exchange {
  std::mutex lock;
  Held held[256];

  void step(Random& random) {
    Held fresh;
    fresh.take(random.size(20 * KiB), random.next());
    {
      const std::lock_guard guard(lock);
      std::swap(fresh, held[random.below(256)]);
    }
    if (fresh.block) fresh.drop();
  }
};

Exchange exchange;
std::atomic<bool> stop{false};

void churn(std::uint64_t seed) {
  Random random(seed);
  std::vector<Held> own(150);
  for (unsigned round = 0; !stop.load(std::memory_order_relaxed); ++round) {
    // Leaves the children a share of the machine, without affecting the moments that matter.
    if (round % 256 == 0) nap(0.0005);
    Held& held = own[random.below(own.size())];
    if (held.block)
      held.drop();
    else
      held.take(random.size(random.one_in(200) ? 512 * KiB : 8 * KiB), random.next());
    if (random.one_in(4)) exchange.step(random);
  }
  for (Held& held : own)
    if (held.block) held.drop();
}

// What a child does: allocates all sizes, and frees the blocks of threads that are gone.
int use_heap_in_child() {
  alarm(static_cast<unsigned>(patience(20)));
  std::vector<Held> own(64);
  for (std::size_t at = 0; at < own.size(); ++at) own[at].take(std::size_t{1} << at % 20, at);
  Random random(static_cast<std::uint64_t>(getpid()));
  for (int round = 0; round < 200; ++round) {
    Held& held = own[random.below(own.size())];
    if (held.block) held.drop();
    held.take(random.size(30 * KiB), random.next());
  }
  for (Held& held : exchange.held)
    if (held.block) held.drop();
  for (Held& held : own) held.drop();
  return 0;
}

// Forks while the exchange is locked, as a program would guard its own data; the heap is always busy.
int fork_and_wait(int (*in_child_body)()) {
  pid_t child;
  {
    const std::lock_guard guard(exchange.lock);
    child = fork();
    if (child == 0) _exit(in_child_body());
  }
  NEED(child > 0, "fork");
  const int status = await(child, 25);
  return status == 0 ? 0 : 1;
}

class Load {
 public:
  explicit Load(int count) {
    stop = false;
    for (int at = 0; at < count; ++at) threads_.emplace_back(churn, static_cast<std::uint64_t>(at) + 1);
    nap(0.02);
  }
  ~Load() {
    stop = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::vector<std::thread> threads_;
};

TEST(Fork, UnderLoadOfFourThreads) {
  const Load load(4);
  for (int at = 0; at < rounds(100); ++at) ASSERT_EQ(fork_and_wait(use_heap_in_child), 0) << "fork " << at;
}

// 300 more forks, from threads that allocate in between.
TEST(Fork, FromThreeThreadsAtOnceUnderLoad) {
  const Load load(2);
  std::atomic<int> failed{0};
  std::vector<std::thread> forkers;
  for (std::uint64_t at = 0; at < 3; ++at) {
    forkers.emplace_back([at, &failed] {
      Random random(at + 100);
      for (int round = 0; round < rounds(100); ++round) {
        for (int step = 0; step < 20; ++step) exchange.step(random);
        failed += fork_and_wait(use_heap_in_child);
      }
    });
  }
  for (std::thread& thread : forkers) thread.join();
  EXPECT_EQ(failed.load(), 0);
}

int threads_in_child() {
  alarm(static_cast<unsigned>(patience(20)));
  std::vector<std::thread> threads;
  for (int at = 0; at < 4; ++at) {
    threads.emplace_back([at] {
      Random random(static_cast<std::uint64_t>(at));
      std::vector<Held> own(50);
      for (int round = 0; round < 1000; ++round) {
        Held& held = own[random.below(own.size())];
        if (held.block) held.drop();
        held.take(random.size(20 * KiB), random.next());
        if (random.one_in(8)) exchange.step(random);
      }
      for (Held& held : own)
        if (held.block) held.drop();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return use_heap_in_child();
}

// The program's own lock was held across fork by the forking thread, which may unlock it in the child.
int threads_in_child_unlocked() {
  exchange.lock.unlock();
  return threads_in_child();
}

TEST(Fork, ThreadsInTheChild) {
  const Load load(4);
  for (int at = 0; at < rounds(12); ++at) ASSERT_EQ(fork_and_wait(threads_in_child_unlocked), 0) << "fork " << at;
}

int fork_depth = 0;

int forks_in_child() {
  alarm(static_cast<unsigned>(patience(20)));
  if (++fork_depth < 4) {
    const pid_t child = fork();
    if (child == 0) _exit(forks_in_child());
    NEED(child > 0, "nested fork");
    NEED(await(child, 15) == 0, "at depth %d", fork_depth);
  }
  return use_heap_in_child();
}

TEST(Fork, Nested) {
  const Load load(3);
  for (int at = 0; at < rounds(12); ++at) ASSERT_EQ(fork_and_wait(forks_in_child), 0) << "fork " << at;
}

// The parent's memory must not grow with the number of children, nor a child's with the generations. An emulator's own
// does: each process translates what it runs, which takes 12 to 16 MiB here.
TEST(Fork, GenerationsDoNotGrow) {
  EXPECT_TRUE(in_child([] {
    const std::size_t before = resident();
    for (int generation = 0; generation < 40; ++generation) {
      std::thread([] {
        for (int at = 0; at < 200; ++at) free(malloc(static_cast<std::size_t>(at) * 50));
      }).join();
      const pid_t child = fork();
      if (child > 0) {
        int status = 0;
        waitpid(child, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
      }
      NEED(child == 0);
      std::vector<Held> own(100);
      for (std::size_t at = 0; at < own.size(); ++at) own[at].take(at * 100 + 1, at);
      for (Held& held : own) held.drop();
    }
    const std::size_t most = emulator() != nullptr ? 32 * MiB : 12 * MiB;
    NEED(resident() < before + most, "%zu KiB more after 40 generations", (resident() - before) / KiB);
    return 0;
  }));
}

// ---- handlers ----------------------------------------------------------------------------------

std::atomic<bool> handlers_on{false};
constinit thread_local Held prepared;

void prepare() {
  if (handlers_on) prepared.take(3000, 3);
}

void finish() {
  if (!handlers_on) return;
  Held more;
  more.take(70000, 5);
  prepared.drop();
  more.drop();
}

TEST(Fork, HandlersThatAllocate) {
  ASSERT_EQ(pthread_atfork(prepare, finish, finish), 0);
  handlers_on = true;
  const Load load(3);
  for (int at = 0; at < rounds(40); ++at) ASSERT_EQ(fork_and_wait(use_heap_in_child), 0) << "fork " << at;
  handlers_on = false;
}

// ---- exec --------------------------------------------------------------------------------------

TEST(Fork, VforkAndExec) {
  const Load load(3);
  for (int at = 0; at < rounds(60); ++at) {
    const pid_t child = vfork();
    if (child == 0) {
      execl("/bin/true", "true", static_cast<char*>(nullptr));
      _exit(127);
    }
    ASSERT_GT(child, 0);
    EXPECT_EQ(await(child, 20), 0) << at;
  }
}

TEST(Fork, PosixSpawn) {
  const Load load(3);
  for (int at = 0; at < rounds(60); ++at) {
    std::string name = "true";
    char* const arguments[] = {name.data(), nullptr};
    pid_t child = 0;
    ASSERT_EQ(posix_spawn(&child, "/bin/true", nullptr, nullptr, arguments, environ), 0);
    EXPECT_EQ(await(child, 20), 0) << at;
  }
}

// ---- in a signal handler -----------------------------------------------------------------------

// A single-threaded process may fork in a handler that interrupts malloc: the C library promises it. Most children end
// there; some return into the interrupted malloc and continue.
volatile std::sig_atomic_t forks = 0;
volatile std::sig_atomic_t failed_children = 0;
volatile std::sig_atomic_t is_child = 0;

int signal_forks() { return rounds(2000); }

// One shot at a time: a periodic timer would be due again before its handler is done, and the interrupted malloc would
// never advance.
void arm_timer() {
  const itimerval once{{0, 0}, {0, 20 + forks * 37 % 150}};
  setitimer(ITIMER_REAL, &once, nullptr);
}

void fork_in_handler(int) {
  if (is_child || forks >= signal_forks()) return;
  const int saved = errno;
  const bool returns = forks % 5 == 0;
  const pid_t child = fork();
  if (child == 0) {
    if (!returns) _exit(0);
    signal(SIGALRM, SIG_DFL);
    alarm(static_cast<unsigned>(patience(10)));
    is_child = 1;
    return;
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) failed_children = failed_children + 1;
  forks = forks + 1;
  arm_timer();
  errno = saved;
}

void work_while_interrupted() {
  Random random(77);
  std::vector<Held> own(300);
  int left_in_child = 300;
  while (forks < signal_forks() && left_in_child > 0) {
    Held& held = own[random.below(own.size())];
    if (held.block) held.drop();
    held.take(random.size(random.one_in(50) ? MiB : 2 * KiB), random.next());
    if (is_child) --left_in_child;
  }
  for (Held& held : own)
    if (held.block) held.drop();
}

SCENARIO(fork_in_signal_handler) {
  struct sigaction action{};
  action.sa_handler = fork_in_handler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  arm_timer();
  work_while_interrupted();
  if (is_child) _exit(0);
  NEED(failed_children == 0, "%d of %d", static_cast<int>(failed_children), static_cast<int>(forks));
  return 0;
}

TEST(Fork, InASignalHandlerThatInterruptsMalloc) { EXPECT_SCENARIO("fork_in_signal_handler"); }

}  // namespace
