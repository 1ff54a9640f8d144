// decode() for either mode of the processor, whichever this code runs in.
#pragma once

#include "decode.h"

namespace rh::redirect::x86 {

enum class Mode : uint8_t { bits_32, bits_64 };

// Refuses what is not in opcodes_x86.cpp; and in 64-bit mode, where nobody writes them, near branches with an
// operand-size prefix (Intel's processors and AMD's differ about their length), and data relative to the instruction
// whose address is cut to 32 bits.
bool decode(Mode mode, const uint8_t* code, size_t available, Instruction* instruction);

}  // namespace rh::redirect::x86
