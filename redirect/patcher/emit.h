// Machine code written for a patch. Each function writes at `at` what shall run at `place`, and gives the end of what
// it wrote, or NULL when the target is out of reach or the form is not known.
#pragma once

#include <cstddef>
#include <cstdint>

#include "decode.h"

namespace rh::redirect {

#if defined(__aarch64__) || defined(__arm64ec__)
inline constexpr size_t kJumpSize = 4;                     // b
inline constexpr uintptr_t kReach = uintptr_t{127} << 20;  // of such a jump, with a little to spare
#else
inline constexpr size_t kJumpSize = 5;  // jmp rel32
inline constexpr uintptr_t kReach = sizeof(void*) == 8 ? uintptr_t{2047} << 20 : UINTPTR_MAX;
#endif
inline constexpr size_t kFarJumpSize = 16;

uint8_t* emit_jump(uint8_t* at, uintptr_t place, uintptr_t target);

// Reaches everything; changes no register that a function may expect to find unchanged.
uint8_t* emit_far_jump(uint8_t* at, uintptr_t target);

// `instruction`, decoded at `from`, so that it means the same at `place`.
uint8_t* emit_moved(uint8_t* at, uintptr_t place, const uint8_t* from, const Instruction& instruction);

}  // namespace rh::redirect
