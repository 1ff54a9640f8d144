// A simulation of cores with private caches, for code compiled with -fsanitize=thread and linked with this in place of
// ThreadSanitizer's runtime. It counts the cache lines that would have moved between the cores: what keeps an allocator
// from scaling, and what two processors show as well as sixty.
//
// Each core is a thread. One runs at a time, and hands its turn over after every operation, to a core drawn from a
// generator with a fixed seed: so they interleave more finely than any machine's would, and every run is the same.
//
// The program around the allocator is not compiled with -fsanitize=thread. It says what it does:
//
//   main      expect(cores), create the threads, wait for all to have left, print_counts()
//   a thread  enter(core); what comes before the counting; gather(); operations; stop_counting(); leave()
#pragma once

#include <cstddef>
#include <cstdint>

namespace coherence {

// A line's state is one word: a bit for each of these, one for threads that are no core's, one for "changed".
inline constexpr unsigned kMostCores = 62;

// ---- turns ----

void expect(unsigned cores, uint64_t seed);
// The calling thread is that core from now on, and returns when it is its turn.
void enter(unsigned core);
// Waits for all cores to come here; then counting begins.
void gather();
// Half an operation is done: another core may have its turn.
void turn();
// The same after a whole one, which is counted.
void operation();
void leave();
// Passes core and turn on to the thread that calls succeed(), and returns at once.
void hand_on();
void succeed(unsigned core);

// The time on these cores, where an operation takes each a microsecond: the machine's own would make what allocators do
// now and then a part of every few operations, and no two runs the same.
uint64_t now_ms();

// ---- what happens ----

void stop_counting();
// The program's own use of its memory: it moves lines, and they are not counted.
void touch(const void* memory, size_t size);
// The allocator gave this block: whose were its pages last?
void note_block(const void* block, size_t size);

// A hold of a lock, from before the lock's own line is asked for. Locks are counted by class; of the shared ones it is
// also counted what happens while any of them is held.
struct LockClass {
  const char* name;
  bool shared;
};
inline constexpr unsigned kMostLockClasses = 8;
void name_lock_class(unsigned number, LockClass what);
void hold_begins(unsigned lock_class);
void hold_refused();
void hold_ends(unsigned lock_class);

// ---- what was counted ----

struct Counts {
  uint64_t operations;
  uint64_t accesses, read_modify_writes;             // the latter: atomic ones
  uint64_t misses_clean, misses_modified, upgrades;  // lines.h
  uint64_t pages, pages_of_others;  // of blocks whose pages had been some core's before: all, and another core's
  uint64_t stalls;                  // misses that the core waits for
  uint64_t holds, hold_accesses, hold_misses, hold_stalls;  // of shared locks

  uint64_t misses() const { return misses_clean + misses_modified + upgrades; }
};
const Counts& counts();

struct Holds {
  uint64_t holds, accesses, misses, most_misses;
};
const Holds& holds_of(unsigned lock_class);
const LockClass& lock_class(unsigned number);  // its name is null where it has none

// All of it as one JSON object, with the places in the program that missed most.
void print_counts();

}  // namespace coherence
