// The patterns of use whose line moves are counted: what each one does stands above it.
//
//   coherence simulate|plain WORKLOAD CORES OPERATIONS SEED
//
// An operation replaces one block by another, or with `pairs` passes one on; each core does OPERATIONS of them, after
// some that are not counted. `plain` does the same work without the simulation: for counting instructions.
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "coherence.h"

namespace {

constinit bool g_simulating = false;
constinit unsigned g_cores = 0;
constinit unsigned long g_operations = 0;
constinit uint64_t g_seed = 0;
sem_t g_left;

[[noreturn]] void fail(const char* what) {
  fprintf(stderr, "coherence: %s\n", what);
  exit(3);
}

// ---- random numbers: one generator a core, so that each does the same in every run ----

class Random {
 public:
  explicit Random(unsigned core) : state_((g_seed + core + 1) * 0x9E3779B97F4A7C15u | 1) {}

  size_t below(size_t limit) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<size_t>(state_ >> 16) % limit;
  }

  // Each doubling as likely as the next, so small sizes most often.
  size_t skewed(unsigned least_bits, unsigned most_bits) {
    size_t top = size_t{1} << (least_bits + below(most_bits - least_bits + 1));
    return top / 2 + 1 + below(top / 2);
  }

 private:
  uint64_t state_;
};

// ---- the simulation, where there is one ----

void enter(unsigned core) {
  if (g_simulating) coherence::enter(core);
}

void gather() {
  if (g_simulating) coherence::gather();
}

void turn() {
  if (g_simulating) coherence::turn();
}

void operation() {
  if (g_simulating) coherence::operation();
}

// For another core: where nothing is simulated that one runs by itself.
void wait_a_turn() {
  if (g_simulating) return coherence::turn();
  sched_yield();
}

// The cores stop counting when the first is done: from then on fewer than all are running.
void stop_counting() {
  if (g_simulating) coherence::stop_counting();
}

void leave() {
  if (g_simulating) coherence::leave();
  sem_post(&g_left);
}

// ---- blocks ----

// As a program does that uses what it asked for. In the simulation, where a run would take gigabytes, it only says so.
void use(void* block, size_t size) {
  constexpr size_t kLine = 64;
  constexpr size_t kMost = 4096;
  if (g_simulating) {
    coherence::note_block(block, size);
    coherence::touch(block, size);
    return;
  }
  volatile char* bytes = static_cast<char*>(block);
  for (size_t at = 0; at < size && at < kMost; at += kLine) bytes[at] = 1;
}

void* get(size_t size) {
  void* block = malloc(size);
  if (block == nullptr) fail("out of memory");
  use(block, size);
  return block;
}

void fill(void*& block, size_t size) {
  block = get(size);
  turn();
}

void replace(void*& block, size_t size) {
  free(block);
  turn();
  block = get(size);
  operation();
}

// ---- slots: each core replaces blocks of its own, at random ----

struct Slots {
  unsigned count;
  size_t (*size)(Random&);
  bool shared;  // a tenth of the blocks goes through an array of pointers that all cores share
};

constexpr size_t kShared = 1024;
constinit std::atomic<void*> g_shared[kShared] = {};

// Puts the block into the shared array, and has what was there instead.
void swap_with_others(void*& block, Random& random) { block = g_shared[random.below(kShared)].exchange(block); }

void replace_some(void** blocks, const Slots& shape, Random& random) {
  for (unsigned long done = 0; done < g_operations; ++done) {
    void*& block = blocks[random.below(shape.count)];
    if (shape.shared && random.below(10) == 0) swap_with_others(block, random);
    replace(block, shape.size(random));
  }
}

// First as many operations that are not counted: what has only been filled is in better order than it will ever be.
void run_slots(unsigned core, const Slots& shape) {
  Random random(core);
  void** blocks = static_cast<void**>(calloc(shape.count, sizeof(void*)));
  if (blocks == nullptr) fail("out of memory");
  for (unsigned i = 0; i < shape.count; ++i) fill(blocks[i], shape.size(random));
  replace_some(blocks, shape, random);
  gather();
  replace_some(blocks, shape, random);
  stop_counting();
  leave();
}

// 16 bytes to 1 KiB.
void small(unsigned core) {
  run_slots(core, {4096, [](Random& random) { return random.skewed(4, 10); }, false});
}

// 512 bytes to 32 KiB.
void medium_small(unsigned core) {
  run_slots(core, {1000, [](Random& random) { return random.skewed(10, 15); }, false});
}

// As mimalloc's mstress: to 64 KiB, a tenth of it through the shared array.
void mstress(unsigned core) {
  run_slots(core, {1000, [](Random& random) { return random.skewed(4, 16); }, true});
}

// As maltest: to 512 KiB.
void maltest(unsigned core) {
  run_slots(core, {300, [](Random& random) { return random.skewed(4, 19); }, false});
}

// 32 to 256 KiB.
void big(unsigned core) {
  constexpr size_t kLeast = 32 << 10;
  constexpr size_t kMost = 256 << 10;
  run_slots(core, {64, [](Random& random) { return kLeast + 1 + random.below(kMost - kLeast); }, false});
}

// ---- pairs: even cores make bundles of blocks, the odd one beside each frees them ----

constexpr size_t kBundle = 120;
constexpr unsigned kMostWaiting = 8;
constexpr unsigned kWarmBundles = 4;

struct Bundle {
  void* blocks[kBundle];
};

struct alignas(128) Ring {
  Bundle* places[kMostWaiting];
  alignas(128) std::atomic<unsigned> made;
  alignas(128) std::atomic<unsigned> taken;
};
constinit Ring g_rings[coherence::kMostCores / 2] = {};

unsigned bundles() { return kWarmBundles + static_cast<unsigned>((g_operations + kBundle - 1) / kBundle); }

Bundle* make_bundle(Random& random) {
  Bundle* made = static_cast<Bundle*>(get(sizeof(Bundle)));
  for (void*& block : made->blocks) {
    block = get(random.skewed(4, 9));
    turn();
  }
  return made;
}

void free_bundle(Bundle* bundle) {
  for (void* block : bundle->blocks) {
    free(block);
    operation();
  }
  free(bundle);
}

void produce(unsigned core, Ring& ring) {
  Random random(core);
  for (unsigned i = 0; i < bundles(); ++i) {
    if (i == kWarmBundles) gather();
    Bundle* made = make_bundle(random);
    while (i - ring.taken.load() >= kMostWaiting) wait_a_turn();
    ring.places[i % kMostWaiting] = made;
    ring.made.store(i + 1);
  }
}

void consume(Ring& ring) {
  for (unsigned i = 0; i < bundles(); ++i) {
    if (i == kWarmBundles) gather();
    while (ring.made.load() == i) wait_a_turn();
    Bundle* bundle = ring.places[i % kMostWaiting];
    ring.taken.store(i + 1);
    free_bundle(bundle);
  }
  stop_counting();
}

void pairs(unsigned core) {
  Ring& ring = g_rings[core / 2];
  if (core % 2 == 0)
    produce(core, ring);
  else
    consume(ring);
  leave();
}

// ---- larson: a thread works at a desk for a while, and then another takes over its blocks ----

constexpr unsigned kDeskBlocks = 1000;
constexpr unsigned long kGeneration = 200;

struct Desk {
  void* blocks[kDeskBlocks];
  unsigned core;
  unsigned long done;
  pthread_t last;
};
constinit Desk g_desks[coherence::kMostCores] = {};

size_t desk_size(Random& random) { return 8 + random.below(500); }

void* work_at_desk(void* at);

void hire_successor(Desk& desk) {
  desk.last = pthread_self();
  pthread_t successor;
  if (pthread_create(&successor, nullptr, work_at_desk, &desk) != 0) fail("cannot create a thread");
  if (g_simulating) coherence::hand_on();
}

void work_a_generation(Desk& desk) {
  Random random(static_cast<unsigned>(desk.done) * coherence::kMostCores + desk.core);
  for (unsigned long i = 0; i < kGeneration && desk.done < g_operations; ++i, ++desk.done)
    replace(desk.blocks[random.below(kDeskBlocks)], desk_size(random));
  if (desk.done < g_operations) return hire_successor(desk);
  pthread_detach(pthread_self());
  stop_counting();
  leave();
}

// The last one has ended before this one begins, so whose the heap is does not depend on time.
void* work_at_desk(void* at) {
  Desk& desk = *static_cast<Desk*>(at);
  if (g_simulating) coherence::succeed(desk.core);
  pthread_join(desk.last, nullptr);
  work_a_generation(desk);
  return nullptr;
}

void larson(unsigned core) {
  Desk& desk = g_desks[core];
  desk.core = core;
  Random random(core);
  for (void*& block : desk.blocks) fill(block, desk_size(random));
  gather();
  hire_successor(desk);
}

// ---- the program ----

struct Workload {
  const char* name;
  void (*run)(unsigned core);
};
constexpr Workload kWorkloads[] = {
    {"small", small},     {"medium-small", medium_small},
    {"mstress", mstress}, {"maltest", maltest},
    {"big", big},         {"pairs", pairs},
    {"larson", larson},
};
constinit const Workload* g_workload = nullptr;

void* run_core(void* number) {
  unsigned core = static_cast<unsigned>(reinterpret_cast<uintptr_t>(number));
  enter(core);
  g_workload->run(core);
  return nullptr;
}

void run_all() {
  sem_init(&g_left, 0, 0);
  if (g_simulating) coherence::expect(g_cores, g_seed);
  for (uintptr_t core = 0; core < g_cores; ++core) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, run_core, reinterpret_cast<void*>(core)) != 0) fail("cannot create a thread");
  }
  for (unsigned core = 0; core < g_cores; ++core)
    while (sem_wait(&g_left) != 0) {}
}

unsigned long number(const char* text, unsigned long least, unsigned long most) {
  char* end = nullptr;
  unsigned long value = strtoul(text, &end, 10);
  if (*text == '\0' || *end != '\0' || value < least || value > most) fail("a number is out of range");
  return value;
}

}  // namespace

int main(int count, char** words) {
  if (count != 6) fail("usage: coherence simulate|plain WORKLOAD CORES OPERATIONS SEED");
  g_simulating = strcmp(words[1], "simulate") == 0;
  for (const Workload& workload : kWorkloads)
    if (strcmp(workload.name, words[2]) == 0) g_workload = &workload;
  if (g_workload == nullptr) fail("unknown workload");
  g_cores = static_cast<unsigned>(number(words[3], 1, coherence::kMostCores));
  g_operations = number(words[4], 1, 1u << 30);
  g_seed = number(words[5], 0, 1u << 30);
  if (g_workload->run == pairs && g_cores % 2 != 0) fail("pairs need an even number of cores");
  run_all();
  if (g_simulating) coherence::print_counts();
  fflush(stdout);
  _Exit(0);
}
