// From a call up to the program's beginning. The stack is read as far as it is known to be the thread's own, and
// everything else by the kernel's leave, so that no table, register or stack, however wrong, makes it fault.
#pragma once

#include <cstdint>

#include "linux/stacks/rule.h"
#include "linux/stacks/tree.h"

namespace recorder {

struct Registers {
  uintptr_t pc, sp, fp;
};

// Memory that stays as long as the thread runs: [low, high).
struct StackRange {
  uintptr_t low, high;
};

// `trusted`: so far every frame was found by tables, and `pc` is a place that code returns to.
using FindRule = Rule(Stream& stream, uintptr_t pc, bool trusted);

inline constexpr uint32_t kMostFrames = 256;

// The innermost frame first; of a deeper stack, the innermost ones. Frames of the caller's own module are left out.
uint32_t walk(Registers from, StackRange range, FindRule* find, Stream& stream, Frame (&frames)[kMostFrames]);

}  // namespace recorder
