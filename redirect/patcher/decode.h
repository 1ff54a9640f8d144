// One machine instruction: what has to be known to move it elsewhere, or to follow it. x86's are in a table
// (opcodes_x86.cpp); arm64's have one length and few position-relative forms.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rh::redirect {

enum class Flow : uint8_t {
  next,      // goes on behind itself
  branch,    // may also go to `target`
  jump,      // goes to `target`
  call,      // calls `target`, or through a pointer when that is 0
  leave,     // returns, jumps through a pointer, or ends the process
  unmovable  // goes somewhere in a form that cannot be rewritten
};

struct Instruction {
  uint8_t length = 0;
  Flow flow = Flow::next;
  bool padding = false;   // what compilers put between functions
  uint8_t condition = 0;  // of a branch, as the machine numbers them
  uintptr_t target = 0;   // of branch, jump and call
  // Offset of 4 bytes that hold the distance from the instruction's end to `data`, or 0.
  uint8_t field = 0;
  uintptr_t data = 0;
};

// False when the bytes are no known instruction, or `available` of them do not hold it.
bool decode(const uint8_t* code, size_t available, Instruction* instruction);

}  // namespace rh::redirect
