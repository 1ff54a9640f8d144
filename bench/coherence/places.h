// The places in the program that missed, by the address of the instruction.
#pragma once

#include <cstddef>
#include <cstdint>

namespace coherence::places {

struct Place {
  uintptr_t address;
  uint64_t misses, in_shared_holds;
};

void note(uintptr_t address, bool in_shared_hold);

// The one that missed most and has not been taken yet, or null.
const Place* take_worst();

// Misses of places for which there was no room; 0 unless the program is very large.
uint64_t unplaced();

}  // namespace coherence::places
