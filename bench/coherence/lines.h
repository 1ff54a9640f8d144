// The state of every cache line in as many private caches as there are cores: MESI, in caches that never need room.
#pragma once

#include <cstddef>
#include <cstdint>

namespace coherence::lines {

inline constexpr unsigned kLineBits = 6;

enum class Access : uint8_t { read, write, read_modify_write };

// What a core waits for: a write goes on in its own time, until there are too many.
constexpr bool is_waited_for(Access kind) { return kind != Access::write; }

// What an access costs.
enum class Outcome : uint8_t {
  hit,       // the core has the line as it needs it
  cold,      // nobody has had it: from memory on any machine
  clean,     // a miss: other cores have it, unmodified
  modified,  // a miss: another core has modified it
  upgrade,   // a miss: the core has it to read, and others must drop it
};
constexpr bool is_miss(Outcome outcome) { return outcome >= Outcome::clean; }

// An access by `core` to a line (an address >> kLineBits). Cores are numbered from 0 to 62. A
// read-modify-write is a write even if it then changes nothing.
Outcome access(uintptr_t line, unsigned core, Access kind);

}  // namespace coherence::lines
