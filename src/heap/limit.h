// How much the heap may hold, and who says so. The arena keeps the limits (arena/limit.cpp); here is where they come
// from. What is done as they are reached is in heap/relief.h (docs/design/limits.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "arena/arena.h"

namespace rh::limit {

// One limit: so many bytes, or so many per cent of what the process may use of the machine.
struct Bound {
  enum class Kind : uint8_t { none, bytes, percent } kind = Kind::none;
  uint64_t value = 0;
};

struct Rule {
  Bound soft, hard;
  bool automatic = false;  // both as the OS's limits leave room
  bool ends = false;       // beyond the hard one the process ends, instead of being refused memory
};

// Less is no limit that a program could live with.
inline constexpr uint64_t kLeast = uint64_t{1} << 20;

// From now on; relief::answer() then does what follows from it. Holding no lock.
void set(const Rule& rule);
Rule rule();

struct Figures {
  Arena::Standing now;
  size_t soft_met, hard_met;  // how often it was crossed; and how many requests were refused
};
Figures figures();
void note_crossed();

// What is free goes back beyond either limit: a hard one may have been set below what is held.
inline size_t lower_of(const Arena::Limit& limit) { return limit.soft < limit.hard ? limit.soft : limit.hard; }
inline bool is_beyond(const Arena::Standing& now) { return now.held > lower_of(now.limit); }

// Whether the OS is asked for limits, which it may change; and doing so. True when they are others than before.
bool follows();
bool renew(platform::ThreadToken token);

// A request was refused: whether it is worth another attempt, for the OS's limits have changed.
bool has_risen();

// Whether there is a hard limit.
bool is_hard();

// It was refused for good, by the hard limit. Does not return when that ends the process.
void note_refused(size_t size);

// By the helper, or in its place, now and then: follows the OS's limits; says what is to go back at once: beyond the
// soft limit what is free already, for a program may live there; where memory is short, all that can be freed.
enum class Haste : uint8_t { none, free, all };
Haste look(platform::ThreadToken token);

// A sandbox is being entered, which may not let the process ask any longer.
void stop_following();

}  // namespace rh::limit
