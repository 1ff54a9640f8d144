#include "lines.h"

#include <atomic>

#include "shadow.h"

namespace coherence::lines {

namespace {

// A bit for each core that has the line. With the highest bit, exactly one has it, and has modified it.
using State = uint64_t;
constexpr State kModified = State{1} << 63;

constinit Shadow<State, kLineBits> g_states;

Outcome read(State& state, State mine) {
  if (state & mine) return Outcome::hit;
  Outcome outcome = state & kModified ? Outcome::modified : state != 0 ? Outcome::clean : Outcome::cold;
  state = (state & ~kModified) | mine;  // what was modified is written back, and both have it
  return outcome;
}

Outcome write(State& state, State mine) {
  State before = state;
  State others = before & ~kModified & ~mine;
  state = kModified | mine;
  if (before == 0) return Outcome::cold;
  if (others == 0) return Outcome::hit;
  if (before & kModified) return Outcome::modified;
  return before & mine ? Outcome::upgrade : Outcome::clean;
}

}  // namespace

// Threads that are no core's run beside the one whose turn it is. What they do to a line in the same instant may be
// lost, which is as if it had happened a little later; the word itself is never half written.
Outcome access(uintptr_t line, unsigned core, Access kind) {
  std::atomic_ref<State> word(g_states.at(line));
  State state = word.load(std::memory_order_relaxed);
  State before = state;
  State mine = State{1} << core;
  Outcome outcome = kind == Access::read ? read(state, mine) : write(state, mine);
  if (state != before) word.store(state, std::memory_order_relaxed);
  return outcome;
}

}  // namespace coherence::lines
