// fork beside everything that may hold one of our locks or of the C library's.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#include "held.h"

using namespace chaos;

namespace {

std::atomic<bool> stop{false};

// Blocks that pass from thread to thread, so that each frees what others allocated.
struct Exchange {
  std::mutex lock;
  Held held[128];

  void swap(Held& with, std::size_t place) {
    const std::lock_guard guard(lock);
    std::swap(with, held[place]);
  }

  void step(Random& random) {
    Held fresh;
    fresh.take(random.size(20 * KiB), random.next());
    swap(fresh, random.below(128));
    if (fresh) fresh.drop();
  }
};

Exchange exchange;

// Forks while nobody holds the exchange: that lock is the program's own responsibility.
template <class Body> void fork_once(Body in_child) {
  pid_t child;
  {
    const std::lock_guard guard(exchange.lock);
    child = fork();
    if (child == 0) {
      in_child();
      _exit(0);
    }
  }
  NEED(child > 0, "fork");
  NEED(ended_well(child));
}

void drop_what_others_made() {
  for (Held& held : exchange.held)
    if (held) held.drop();
}

// ---- threads that come and go ------------------------------------------------------------------

// Leaves slabs of many classes behind, partly in use by others.
void pass_by(std::uint64_t seed) {
  Random random(seed);
  Held own[40];
  for (Held& held : own) held.take(random.size(8 * KiB), random.next());
  for (int step = 0; step < 20; ++step) exchange.step(random);
  for (Held& held : own) held.drop();
}

void start_passers_by(std::uint64_t seed) {
  while (!stop) std::thread(pass_by, seed = mix(seed)).join();
}

SCENARIO(fork_beside_passing_threads) {
  std::vector<std::thread> sources;
  for (std::uint64_t at = 1; at <= 3; ++at) sources.emplace_back(start_passers_by, at);
  const int rounds = times(400);
  for (int at = 0; at < rounds; ++at) {
    fork_once([at] {
      use_heap(static_cast<std::uint64_t>(at));
      drop_what_others_made();
    });
  }
  stop = true;
  for (std::thread& source : sources) source.join();
  return 0;
}

// ---- streams -----------------------------------------------------------------------------------

void read_lines() {
  while (!stop) {
    FILE* file = std::tmpfile();
    NEED(file, "tmpfile");
    for (int line = 0; line < 40; ++line) std::fprintf(file, "%0*d\n", line * 20, line);
    std::rewind(file);
    for (int pass = 0; pass < 5 && !stop; ++pass) {
      char* text = nullptr;
      std::size_t room = 0;
      while (getline(&text, &room, file) > 0) {}
      free(text);
      std::rewind(file);
    }
    std::fclose(file);
  }
}

void flush_all() {
  while (!stop) std::fflush(nullptr);
}

SCENARIO(fork_beside_streams) {
  std::thread reader(read_lines);
  std::thread flusher(flush_all);
  const int rounds = times(200);
  for (int at = 0; at < rounds; ++at) {
    fork_once([at] {
      use_heap(static_cast<std::uint64_t>(at));
      FILE* file = std::fopen("/proc/self/stat", "r");
      NEED(file, "fopen in the child");
      char* text = nullptr;
      std::size_t room = 0;
      NEED(getline(&text, &room, file) > 0, "getline in the child");
      std::fclose(file);
      free(text);
      std::fflush(nullptr);
    });
  }
  stop = true;
  reader.join();
  flusher.join();
  return 0;
}

// ---- handlers ----------------------------------------------------------------------------------

std::atomic<int> forks{0};
std::atomic<bool> may_interrupt{false};
volatile std::sig_atomic_t is_child = 0;

// Some children end here; some continue what was interrupted.
void fork_in_handler(int) {
  if (is_child) return;
  const int number = forks.load(std::memory_order_relaxed);
  const pid_t child = fork();
  if (child == 0) {
    if (number % 3 == 0) _exit(0);
    is_child = 1;
    return;
  }
  NEED(child > 0, "fork in the handler");
  NEED(ended_well(child), "child %d of a handler", number);
  forks.fetch_add(1, std::memory_order_relaxed);
  may_interrupt = true;
}

// Half of them go to the arena.
std::size_t some_size(Random& random) {
  return random.one_in(2) ? 33 * KiB + random.below(100 * KiB) : random.size(8 * KiB);
}

// Returns only in a child, where the interrupted code has finished.
bool allocate_while_interrupted(int wanted) {
  Random random(7);
  std::vector<Held> own(200);
  int left_in_child = 100;
  while (forks < wanted && left_in_child > 0) {
    Held& held = own[random.below(own.size())];
    if (held) held.drop();
    held.take(some_size(random), random.next());
    if (is_child) --left_in_child;
  }
  for (Held& held : own)
    if (held) held.drop();
  return is_child;
}

void churn(std::uint64_t seed) {
  Random random(seed);
  std::vector<Held> own(100);
  while (!stop) {
    Held& held = own[random.below(own.size())];
    if (held) held.drop();
    held.take(some_size(random), random.next());
  }
  for (Held& held : own)
    if (held) held.drop();
}

void interrupt(pthread_t whom, int wanted) {
  Random random(11);
  while (forks < wanted) {
    if (!may_interrupt.exchange(false)) {
      nap(0.0001);
      continue;
    }
    for (std::size_t spin = random.below(20000); spin > 0; --spin) asm volatile("");
    pthread_kill(whom, SIGUSR1);
  }
}

SCENARIO(fork_in_handler_beside_threads) {
  struct sigaction action{};
  action.sa_handler = fork_in_handler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
  const int wanted = times(60);
  may_interrupt = true;
  std::vector<std::thread> others;
  for (std::uint64_t at = 1; at <= 2; ++at) others.emplace_back(churn, at);
  others.emplace_back(interrupt, pthread_self(), wanted);
  if (allocate_while_interrupted(wanted)) {
    use_heap(1);
    _exit(0);
  }
  stop = true;
  for (std::thread& other : others) other.join();
  return 0;
}

// ---- stacks that look alike --------------------------------------------------------------------

// A thread whose stack lies a multiple of 64 GiB from another's: the lower words of their addresses are the same.
class LookAlike {
 public:
  LookAlike(int number, void* (*body)(void*)) {
    constexpr std::uint64_t kFirst = std::uint64_t{0x2000} << 32;
    constexpr std::uint64_t kApart = std::uint64_t{16} << 32;
    void* stack =
        mmap(reinterpret_cast<void*>(static_cast<std::uintptr_t>(kFirst + kApart * static_cast<unsigned>(number))), MiB,
             PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    NEED(stack != MAP_FAILED, "a stack of its own");
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, MiB);
    NEED(pthread_create(&thread_, &attributes, body, nullptr) == 0);
    pthread_attr_destroy(&attributes);
  }
  void join() { pthread_join(thread_, nullptr); }

 private:
  pthread_t thread_;
};

SCENARIO(fork_beside_threads_that_look_alike) {
  if (narrow) return kSkipped;
  const auto churning = [](void*) -> void* {
    churn(pthread_self());
    return nullptr;
  };
  LookAlike first(0, churning);
  LookAlike second(1, churning);
  LookAlike forker(2, [](void*) -> void* {
    const int rounds = times(60);
    for (int at = 0; at < rounds; ++at) {
      use_heap(static_cast<std::uint64_t>(at));
      fork_once([at] { use_heap(static_cast<std::uint64_t>(at)); });
    }
    return nullptr;
  });
  forker.join();
  stop = true;
  first.join();
  second.join();
  return 0;
}

// ---- fork without the C library ----------------------------------------------------------------

pid_t raw_fork(bool clones) {
#ifdef SYS_fork
  if (!clones) return static_cast<pid_t>(syscall(SYS_fork));
#endif
  static_cast<void>(clones);
  return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
}

SCENARIO(raw_fork_after_much_was_freed) {
  Random random(5);
  Held kept[50];
  for (std::size_t at = 0; at < 50; ++at) kept[at].take(at * 100, at);
  const int rounds = times(16);
  for (int at = 0; at < rounds; ++at) {
    free_much(60 * MiB, at % 2 ? MiB : 8 * KiB);
    nap(static_cast<double>(random.below(60)) * 0.001);
    const pid_t child = raw_fork(at % 2);
    if (child == 0) {
      for (Held& held : kept) held.check();
      use_heap(static_cast<std::uint64_t>(at));
      if (at % 8 == 0) {
        free_much(100 * MiB);
        const bool returned = eventually(20, [] {
          free(malloc(100 * KiB));
          return resident() < 40 * MiB;
        });
        NEED(returned, "the child holds %zu MiB", resident() / MiB);
      }
      for (Held& held : kept) held.drop();
      _exit(0);
    }
    NEED(child > 0, "fork by the system call");
    NEED(ended_well(child), "child %d", at);
  }
  for (Held& held : kept) held.drop();
  return 0;
}

// ---- the end of the program ---------------------------------------------------------------------

// Gives the allocator much to walk before a fork: address space is enough.
void make_a_large_heap() {
  const std::size_t size = sizeof(void*) == 8 ? std::size_t{4096} * MiB : 256 * MiB;
  void* volatile block = std::malloc(size);
  NEED(block);
}

void* fork_again_and_again(void*) {
  for (;;) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    stop = true;
    if (child > 0) waitpid(child, nullptr, 0);
  }
}

// At exit the C library forgets its fork handlers, in the middle of a fork.
SCENARIO(exit_beside_fork) {
  Random random(3);
  make_a_large_heap();
  for (int round = 0; round < 30; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      pthread_t forking{};
      if (pthread_create(&forking, nullptr, fork_again_and_again, nullptr) != 0) _exit(3);
      while (!stop) nap(0.001);
      nap(static_cast<double>(random.below(3000)) * 1e-6);
      std::exit(0);
    }
    NEED(child > 0, "fork");
    NEED(ended_well(child), "round %d", round);
  }
  return 0;
}

}  // namespace
