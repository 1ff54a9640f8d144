// How to get from a function's frame to its caller's, at one place of the code.
//
// Of the registers only three are followed: where the code is, the stack pointer and the frame pointer. At a call no
// compiler needs another one to find the frame (a frame that it aligned is found through the frame pointer too).
#pragma once

#include <cstdint>

namespace rh::stacks {

inline constexpr int kWord = 8;

struct Rule {
  enum Kind : uint8_t {
    kTable = 1,     // by what the module's tables say
    kSignal,        // a handler returns here: the kernel has left all registers on the stack
    kOutermost,     // nobody called this
    kFramePointer,  // there are no tables, or none that can be understood: the frame pointer is tried
    kNowhere,       // this is no code
  };
  enum Base : uint8_t { kStackPointer, kFromFramePointer, kThroughFramePointer };
  enum Saved : uint8_t { kUnchanged, kBeforeCaller, kAtFramePointer, kLost };

  Kind kind : 3;
  Base base : 2;    // the caller's frame begins at: sp + offset, fp + offset, or what stands at fp + offset
  Saved saved : 2;  // the caller's frame pointer: as it is, at the caller's frame + saved_at, or at fp + saved_at
  int8_t saved_at;  // in words
  uint16_t module;
  int32_t offset;
};
static_assert(sizeof(Rule) == 8);

// Searches the table of an ELF module, which its .eh_frame_hdr at `header` begins. `header` 0: it has none. By one
// thread at a time.
Rule rule_from_tables(uintptr_t header, uintptr_t pc);

}  // namespace rh::stacks
