#include "mix/disturb.h"

#include <dlfcn.h>
#include <malloc.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <initializer_list>
#include <utility>
#include <vector>

#include "reheap/reheap.h"

namespace chaos {

namespace {

// ---- what passes from thread to thread ----------------------------------------------------------

constexpr std::size_t kPassed = 256;
pthread_mutex_t passed_lock = PTHREAD_MUTEX_INITIALIZER;
Held passed[kPassed];

std::atomic<bool> is_child{false};

// Never waits while holding the lock: a child forked in a handler would wait for ever, for a thread it does not have.
bool lock_passed() {
  while (pthread_mutex_trylock(&passed_lock) != 0) {
    if (is_child) return false;
    nap(0.00002);
  }
  return true;
}

std::size_t some_size(Random& random) {
  if (random.one_in(30)) return random.below(3 * MiB);
  if (random.one_in(5)) return 32 * KiB + random.below(100 * KiB);
  return random.size(16 * KiB);
}

// ---- threads ------------------------------------------------------------------------------------

using Body = void* (*)(void*);

bool start_thread(pthread_t* thread, Body body, std::uint64_t seed, bool detached = false) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 * KiB);
  if (detached) pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  const bool made = pthread_create(thread, &attributes, body, reinterpret_cast<void*>(seed)) == 0;
  pthread_attr_destroy(&attributes);
  return made;
}

struct Ending {
  Held block;
  Ending() { block.take(500, 1); }
  ~Ending() { block.drop(); }
};
thread_local Ending* kept = nullptr;  // using it constructs the variable

pthread_key_t ending_key() {
  static const pthread_key_t key = [] {
    pthread_key_t made = 0;
    pthread_key_create(&made, [](void* held) {
      auto* block = static_cast<Held*>(held);
      block->drop();
      free(held);
    });
    return made;
  }();
  return key;
}

// Leaves one block to the destructor of a key, and one to that of a thread-local variable.
void leave_something(std::uint64_t seed) {
  if (!memory_is_scarce) {  // the C library aborts when it cannot register the destructor
    thread_local Ending ending;
    kept = &ending;
  }
  if (void* memory = need_memory(malloc(sizeof(Held)), sizeof(Held))) {
    auto* held = new (memory) Held;
    held->take(300, seed);
    pthread_setspecific(ending_key(), held);
  }
}

void pass_by(std::uint64_t seed) {
  Random random(seed);
  Held own[12];
  for (Held& held : own) held.take(some_size(random), random.next());
  for (int step = 0; step < 6; ++step) pass_on(random);
  for (Held& held : own) held.drop();
}

void* passing_thread(void* seed) {
  pass_by(reinterpret_cast<std::uintptr_t>(seed));
  leave_something(1);
  return nullptr;
}

void* exiting_thread(void* seed) {
  leave_something(2);
  pass_by(reinterpret_cast<std::uintptr_t>(seed));
  pthread_exit(nullptr);
}

void* cancelled_thread(void* seed) {
  leave_something(3);
  pass_by(reinterpret_cast<std::uintptr_t>(seed));
  for (;;) pause();
}

void many_threads(Random& random) {
  pthread_t threads[24];
  std::size_t count = 0;
  for (std::size_t at = 0; at < 24; ++at) {
    const bool detached = random.one_in(3);
    pthread_t made{};
    // The C library also aborts when it has no memory to unwind a stack.
    const bool exits = !memory_is_scarce && random.one_in(2);
    if (!start_thread(&made, exits ? exiting_thread : passing_thread, random.next(), detached)) continue;
    if (!detached) threads[count++] = made;
  }
  while (count > 0) pthread_join(threads[--count], nullptr);
}

void cancelled_threads(Random& random) {
  for (int at = 0; at < 4 && !memory_is_scarce; ++at) {
    pthread_t thread{};
    if (!start_thread(&thread, cancelled_thread, random.next())) return;
    nap(static_cast<double>(random.below(1000)) * 1e-6);
    pthread_cancel(thread);
    pthread_join(thread, nullptr);
  }
}

// ---- children -----------------------------------------------------------------------------------

// Whatever refuses memory here would refuse it there, and no loader survives that.
bool may_exec() { return !memory_is_scarce; }

void exec_something() {
  char name[] = "true";
  char* arguments[] = {name, nullptr};
  execve("/bin/true", arguments, environment_at_first());
}

void wait_for(pid_t child) {
  if (child > 0)
    NEED(ended_well(child));
  else
    NEED(errno == ENOMEM || errno == EAGAIN, "fork: errno %d", errno);
}

void fork_again(Random& random, int depth);

[[noreturn]] void live_as_child(Random& random, int depth) {
  for (int at = 0; at < 16; ++at) {
    Held& held = passed[random.below(kPassed)];
    if (held) held.check();
  }
  use_heap(random.next());
  if (random.one_in(4)) {
    pthread_t threads[3];
    std::size_t count = 0;
    while (count < 3 && start_thread(&threads[count], passing_thread, random.next())) ++count;
    while (count > 0) pthread_join(threads[--count], nullptr);
  }
  if (depth < 3 && random.one_in(3)) fork_again(random, depth + 1);
  if (may_exec() && random.one_in(8)) exec_something();
  if (random.one_in(6)) free_much(20 * MiB);
  drop_passed();
  _exit(0);
}

void fork_again(Random& random, int depth) {
  pthread_mutex_lock(&passed_lock);
  const std::uint64_t seed = random.next();
  const pid_t child = fork();
  pthread_mutex_unlock(&passed_lock);  // in the child too
  if (child == 0) {
    Random own(seed);
    live_as_child(own, depth);
  }
  wait_for(child);
}

void fork_and_live_on(Random& random) { fork_again(random, 0); }

void fork_and_end(Random&) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  wait_for(child);
}

void vfork_and_exec(Random&) {
  if (!may_exec()) return;
  const pid_t child = vfork();
  if (child == 0) {
    exec_something();
    _exit(127);
  }
  wait_for(child);
}

// ---- signals ------------------------------------------------------------------------------------

constexpr std::size_t kMostOffered = 16;
pthread_t offered[kMostOffered];
std::atomic<std::size_t> offered_count{0};
std::atomic<bool> handled{true};

// Half of the children return into the interrupted code and continue it.
void fork_in_handler(int) {
  if (is_child) return;
  const int saved = errno;
  static std::atomic<unsigned> number{0};
  const bool goes_on = ++number % 2;
  const pid_t child = fork();
  if (child == 0) {
    if (!goes_on) _exit(0);
    is_child = true;
    return;
  }
  if (child > 0) NEED(ended_well(child), "the child of a handler");
  handled = true;
  errno = saved;
}

void set_handler(int signal, void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
}

void interrupt_with_forks(Random& random) {
  const std::size_t count = offered_count;
  if (count == 0) return;
  set_handler(SIGUSR1, fork_in_handler);
  for (int at = 0; at < 3 && handled.exchange(false); ++at) {
    pthread_kill(offered[random.below(count)], SIGUSR1);
    nap(static_cast<double>(random.below(3000)) * 1e-6);
  }
}

// Nothing, or a wait. Not setuid: glibc's waits for ever for threads that could not be created, and in children for
// those that do not exist there (attacks/at_each_step.cpp has it).
void call_in_handler(int) {
  const int saved = errno;
  static std::atomic<unsigned> number{0};
  if (++number % 4 == 0) poll(nullptr, 0, 1);
  errno = saved;
}

void interrupt_with_calls(Random& random) {
  const std::size_t count = offered_count;
  if (count == 0) return;
  set_handler(SIGUSR2, call_in_handler);
  for (int at = 0; at < 20; ++at) pthread_kill(offered[random.below(count)], SIGUSR2);
}

// ---- streams ------------------------------------------------------------------------------------

// In memory: a file's position is shared with forked children, which move it when they flush.
void read_lines(Random& random) {
  static thread_local char content[64 * 1024];
  std::size_t length = 0;
  for (int line = 0; length < sizeof content - 4000; ++line) {
    const int width = static_cast<int>(1 + random.below(3000));
    length += static_cast<std::size_t>(std::snprintf(content + length, sizeof content - length, "%0*d\n", width, line));
  }
  FILE* file = fmemopen(content, length, "r");
  if (!file) return;
  char* text = nullptr;
  std::size_t room = 0;
  int lines = 0;
  while (getline(&text, &room, file) > 0) NEED(std::atoi(text) == lines++, "line %d", lines);
  free(text);
  std::fclose(file);
}

void flush_all(Random&) {
  for (int at = 0; at < 20; ++at) std::fflush(nullptr);
}

// ---- the loader ---------------------------------------------------------------------------------

void load_and_unload(Random& random) {
  const char* const names[] = {"CHAOS_PLUGIN", "CHAOS_CORE_PLUGIN"};
  const char* path = std::getenv(names[random.below(2)]);
  if (!path) return;
  void* plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!plugin) return;
  if (void* use = dlsym(plugin, "chaos_use_and_free")) reinterpret_cast<void (*)()>(use)();
  dlclose(plugin);
}

// ---- limits -------------------------------------------------------------------------------------

void lower_a_limit(Random& random) {
  const auto resource = random.one_in(2) ? RLIMIT_AS : RLIMIT_DATA;
  rlimit before{};
  getrlimit(resource, &before);
  const rlimit tight{random.below(600) * MiB, before.rlim_max};
  memory_is_scarce = true;
  setrlimit(resource, &tight);
  for (int at = 0; at < 20; ++at) pass_on(random);
  Held growing;
  growing.take(4 * MiB, 1);
  if (growing) growing.resize(9 * MiB);
  growing.drop();
  nap(static_cast<double>(random.below(10)) * 0.001);
  setrlimit(resource, &before);
}

// ---- memory -------------------------------------------------------------------------------------

void grow_large(Random& random) {
  Held held;
  held.take(33 * KiB + random.below(6 * MiB), random.next());
  for (int at = 0; at < 5 && held; ++at) held.resize(held.size / 2 + random.below(held.size * 2));
  held.drop();
}

void aligned_and_zeroed(Random& random) {
  for (int at = 0; at < 20; ++at) {
    const std::size_t alignment = std::size_t{16} << random.below(14);
    const std::size_t size = some_size(random) + 1;
    void* block = nullptr;
    if (posix_memalign(&block, alignment, size) != 0) block = nullptr;
    if (need_memory(block, size)) {
      NEED(reinterpret_cast<std::uintptr_t>(block) % alignment == 0, "%zu at %zu", size, alignment);
      Held held;
      held.hold(block, size, random.next());
      held.drop();
    }
    if (void* zeroed = need_memory(calloc(1, size), size)) {
      NEED(all_zero(zeroed, size), "calloc of %zu", size);
      std::memset(zeroed, 1, size);
      free(zeroed);
    }
  }
}

void free_a_lot(Random& random) { free_much((10 + random.below(60)) * MiB, 16 * KiB << random.below(8)); }

void ask_and_trim(Random& random) {
  if (random.one_in(2))
    malloc_trim(0);
  else
    static_cast<void>(mallinfo2());
}

template <class Function> Function* find(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

// First-class heaps, where there are any.
void use_a_heap_of_its_own(Random& random) {
  static auto* const create = find<decltype(rh_heap_create)>("rh_heap_create");
  static auto* const destroy = find<decltype(rh_heap_destroy)>("rh_heap_destroy");
  static auto* const take = find<decltype(rh_heap_malloc)>("rh_heap_malloc");
  if (!create || !destroy || !take) return;
  rh_heap* heap = create();
  if (!need_memory(heap, 0)) return;
  Held held[40];
  for (Held& one : held) {
    const std::size_t size = some_size(random) + 1;
    if (void* made = need_memory(take(heap, size), size)) one.hold(made, size, random.next());
  }
  for (std::size_t at = 0; at < 20; ++at) held[at].drop();
  for (std::size_t at = 20; at < 40; ++at)
    if (held[at]) held[at].check();
  destroy(heap);
}

// ---- rest ---------------------------------------------------------------------------------------

std::atomic<int> resting{0};

void rest(Random& random) {
  ++resting;
  nap(0.02 + static_cast<double>(random.below(150)) * 0.001);
  --resting;
}

}  // namespace

const Disturbance kDisturbances[] = {
    {"many threads", many_threads},
    {"cancelled threads", cancelled_threads},
    {"fork and live on", fork_and_live_on},
    {"fork and end", fork_and_end},
    {"vfork and exec", vfork_and_exec},
    {"signals that fork", interrupt_with_forks},
    {"signals", interrupt_with_calls},
    {"getline", read_lines},
    {"fflush", flush_all},
    {"dlopen", load_and_unload},
    {"limits", lower_a_limit},
    {"growing blocks", grow_large},
    {"aligned blocks", aligned_and_zeroed},
    {"freeing much", free_a_lot},
    {"trim", ask_and_trim},
    {"heaps", use_a_heap_of_its_own},
    {"rest", rest},
};
const std::size_t kDisturbanceCount = sizeof kDisturbances / sizeof kDisturbances[0];

namespace {

bool is_one_of(const Disturbance& disturbance, std::initializer_list<void (*)(Random&)> functions) {
  for (auto* function : functions)
    if (disturbance.run == function) return true;
  return false;
}

}  // namespace

// fork in a handler waits for the C library's locks, whose holders may wait for the interrupted code: a deadlock on any
// allocator.
Mix::Mix(Random& random, bool with_limits) {
  const bool with_handlers = random.one_in(3);
  for (std::size_t at = 0; at < kDisturbanceCount; ++at) {
    const Disturbance& disturbance = kDisturbances[at];
    const bool wanted = random.one_in(2);
    if (is_one_of(disturbance, {interrupt_with_forks})) {
      if (!with_handlers) continue;
    } else if (with_handlers && is_one_of(disturbance, {read_lines, flush_all, load_and_unload, fork_and_live_on,
                                                        fork_and_end, many_threads, cancelled_threads})) {
      continue;
    } else if (is_one_of(disturbance, {lower_a_limit}) ? !with_limits : !wanted) {
      continue;
    }
    chosen_[count_++] = &disturbance;
  }
  if (count_ == 0) chosen_[count_++] = &kDisturbances[0];
  memory_is_scarce = memory_is_scarce || with_limits;
}

void Mix::run_one(Random& random) const { chosen_[random.below(count_)]->run(random); }

void Mix::print() const {
  for (std::size_t at = 0; at < count_; ++at) std::printf("%s%s", at ? ", " : "", chosen_[at]->name);
  std::printf("\n");
  std::fflush(stdout);
}

// Executed programs are not disturbed in turn: under load such a chain would never end.
char** environment_at_first() {
  // Never destroyed: in the background of a program that ends, threads go on to its last instruction.
  static auto* const variables = [] {
    auto* found = new std::vector<char*>;
    for (char** variable = environ; *variable; ++variable)
      if (std::strncmp(*variable, "CHAOS_DISTURB=", 14) != 0) found->push_back(strdup(*variable));
    found->push_back(nullptr);
    return found;
  }();
  return variables->data();
}

void pass_on(Random& random) {
  Held fresh;
  fresh.take(some_size(random), random.next());
  if (lock_passed()) {
    std::swap(fresh, passed[random.below(kPassed)]);
    pthread_mutex_unlock(&passed_lock);
  }
  fresh.drop();
}

void drop_passed() {
  for (Held& held : passed) held.drop();
}

void offer_to_interrupt(pthread_t thread) {
  if (offered_count < kMostOffered) {
    offered[offered_count] = thread;
    ++offered_count;
  }
}

bool is_interrupted_child() { return is_child; }

void rest_if_wanted() {
  while (resting > 0 && !is_child) nap(0.002);
}

}  // namespace chaos
