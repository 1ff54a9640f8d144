#include "counter.h"

#include <atomic>

#include "places.h"
#include "shadow.h"
#include "turns.h"

namespace coherence {

namespace {

using lines::Access;
using lines::Outcome;

constexpr unsigned kPageBits = 12;
constexpr unsigned kNoCore = kMostCores;  // the program's other threads: they move lines, and are not counted
constexpr unsigned kMostNested = 8;
constexpr size_t kMostTouched = 64 * 64;

// A hold that has begun, and what its thread had done until then.
struct Open {
  unsigned lock_class;
  uint64_t accesses, misses;
};

struct Thread {
  unsigned core = kNoCore;
  uint64_t accesses = 0, misses = 0;
  Open open[kMostNested] = {};
  unsigned open_count = 0;
  unsigned shared_open = 0;
};
constinit thread_local Thread t_thread;

// Changed by the thread whose turn it is, and read when there is none.
constinit bool g_counting = false;
constinit unsigned g_cores = 1;
constinit uint64_t g_done = 0;  // operations, counted or not
constinit Counts g_counts{};
constinit LockClass g_classes[kMostLockClasses] = {};
constinit Holds g_holds[kMostLockClasses] = {};
constinit Shadow<uint8_t, kPageBits> g_last_cores;  // and 1; 0 is none

bool counts_for(const Thread& thread) { return g_counting && thread.core != kNoCore; }

void count(Outcome outcome) {
  switch (outcome) {
  case Outcome::clean: ++g_counts.misses_clean; break;
  case Outcome::modified: ++g_counts.misses_modified; break;
  case Outcome::upgrade: ++g_counts.upgrades; break;
  case Outcome::hit:
  case Outcome::cold: break;
  }
}

void count_access(Thread& thread, Access kind, Outcome outcome, uintptr_t place) {
  bool missed = lines::is_miss(outcome);
  bool shared = thread.shared_open != 0;
  ++thread.accesses;
  thread.misses += missed;
  ++g_counts.accesses;
  g_counts.hold_accesses += shared;
  g_counts.hold_misses += shared && missed;
  g_counts.read_modify_writes += kind == Access::read_modify_write;
  bool stalled = missed && lines::is_waited_for(kind);
  g_counts.stalls += stalled;
  g_counts.hold_stalls += shared && stalled;
  count(outcome);
  if (missed) places::note(place, shared);
}

}  // namespace

void note_access(uintptr_t address, size_t size, Access kind, uintptr_t place) {
  if (size == 0) return;
  Thread& thread = t_thread;
  uintptr_t last = (address + size - 1) >> lines::kLineBits;
  for (uintptr_t line = address >> lines::kLineBits; line <= last; ++line) {
    Outcome outcome = lines::access(line, thread.core, kind);
    if (counts_for(thread)) count_access(thread, kind, outcome, place);
  }
}

// ---- turns: whose is also known to the thread itself ----

void expect(unsigned cores, uint64_t seed) {
  g_cores = cores;
  g_turns.expect(cores, seed);
}

uint64_t now_ms() {
  constexpr uint64_t kOperationsPerMs = 1000;
  return 1 + g_done / g_cores / kOperationsPerMs;
}

void enter(unsigned core) {
  g_turns.enter(core);
  t_thread.core = core;
}

void gather() {
  if (g_turns.gather()) g_counting = true;
}

void turn() { g_turns.hand_over(); }

void operation() {
  ++g_done;
  if (g_counting) ++g_counts.operations;
  g_turns.hand_over();
}

void leave() {
  t_thread.core = kNoCore;
  g_turns.leave();
}

void hand_on() {
  t_thread.core = kNoCore;
  g_turns.hand_on();
}

void succeed(unsigned core) {
  g_turns.wait_for(core);
  t_thread.core = core;
}

// ---- what the program says ----

void stop_counting() { g_counting = false; }

// Of a large block 4 KiB: more lines are the same again.
void touch(const void* memory, size_t size) {
  uintptr_t begin = reinterpret_cast<uintptr_t>(memory) >> lines::kLineBits;
  uintptr_t end =
      (reinterpret_cast<uintptr_t>(memory) + (size < kMostTouched ? size : kMostTouched) - 1) >> lines::kLineBits;
  for (uintptr_t line = begin; line <= end; ++line) lines::access(line, t_thread.core, Access::write);
}

void note_block(const void* block, size_t size) {
  uintptr_t last = (reinterpret_cast<uintptr_t>(block) + size - 1) >> kPageBits;
  uint8_t mine = static_cast<uint8_t>(t_thread.core + 1);
  for (uintptr_t page = reinterpret_cast<uintptr_t>(block) >> kPageBits; page <= last; ++page) {
    uint8_t& core = g_last_cores.at(page);
    if (counts_for(t_thread) && core != 0) {
      ++g_counts.pages;
      g_counts.pages_of_others += core != mine;
    }
    core = mine;
  }
}

// ---- holds ----

void name_lock_class(unsigned number, LockClass what) { g_classes[number] = what; }

void hold_begins(unsigned lock_class) {
  Thread& thread = t_thread;
  if (thread.core == kNoCore || thread.open_count == kMostNested) return;
  thread.open[thread.open_count++] = {lock_class, thread.accesses, thread.misses};
  thread.shared_open += g_classes[lock_class].shared;
}

// Locks are let go in any order; what was refused is always the last that was asked for.
void hold_refused() {
  Thread& thread = t_thread;
  if (thread.open_count == 0) return;
  thread.shared_open -= g_classes[thread.open[--thread.open_count].lock_class].shared;
}

void hold_ends(unsigned lock_class) {
  Thread& thread = t_thread;
  unsigned at = thread.open_count;
  while (at != 0 && thread.open[at - 1].lock_class != lock_class) --at;
  if (at == 0) return;  // it began before the thread was a core
  Open ended = thread.open[at - 1];
  for (; at < thread.open_count; ++at) thread.open[at - 1] = thread.open[at];
  --thread.open_count;
  thread.shared_open -= g_classes[lock_class].shared;
  if (!counts_for(thread)) return;
  Holds& holds = g_holds[lock_class];
  uint64_t misses = thread.misses - ended.misses;
  ++holds.holds;
  holds.accesses += thread.accesses - ended.accesses;
  holds.misses += misses;
  if (misses > holds.most_misses) holds.most_misses = misses;
  g_counts.holds += g_classes[lock_class].shared;
}

const Counts& counts() { return g_counts; }
const Holds& holds_of(unsigned lock_class) { return g_holds[lock_class]; }
const LockClass& lock_class(unsigned number) { return g_classes[number]; }

}  // namespace coherence
