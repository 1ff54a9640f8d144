#include "emit.h"

namespace rh::redirect {

namespace {

// The distance from the end of an instruction that ends 4 bytes behind `place`.
bool distance(uintptr_t place, uintptr_t target, int32_t* result) {
  intptr_t value = static_cast<intptr_t>(target - (place + 4));
  *result = static_cast<int32_t>(value);
  return *result == value;
}

uint8_t* emit_distance(uint8_t* at, uintptr_t place, uintptr_t target) {
  int32_t value = 0;
  if (!distance(place, target, &value)) return nullptr;
  __builtin_memcpy(at, &value, sizeof(value));
  return at + sizeof(value);
}

uint8_t* emit_branch(uint8_t* at, uintptr_t place, const Instruction& instruction) {
  at[0] = 0x0F;
  at[1] = static_cast<uint8_t>(0x80 | instruction.condition);
  return emit_distance(at + 2, place + 2, instruction.target);
}

uint8_t* emit_copy(uint8_t* at, uintptr_t place, const uint8_t* from, const Instruction& instruction) {
  __builtin_memcpy(at, from, instruction.length);
  if (instruction.field != 0) {
    // The distance counts from the instruction's end, which lies `rest` bytes behind that of the field.
    size_t rest = instruction.length - instruction.field - size_t{4};
    if (emit_distance(at + instruction.field, place + instruction.field + rest, instruction.data) == nullptr)
      return nullptr;
  }
  return at + instruction.length;
}

}  // namespace

uint8_t* emit_jump(uint8_t* at, uintptr_t place, uintptr_t target) {
  at[0] = 0xE9;
  return emit_distance(at + 1, place + 1, target);
}

uint8_t* emit_far_jump(uint8_t* at, uintptr_t target) {
  if constexpr (sizeof(void*) == 4) {
    return emit_jump(at, reinterpret_cast<uintptr_t>(at), target);
  } else {
    constexpr uint8_t kJumpThroughNext[] = {0xFF, 0x25, 0, 0, 0, 0};
    __builtin_memcpy(at, kJumpThroughNext, sizeof(kJumpThroughNext));
    __builtin_memcpy(at + sizeof(kJumpThroughNext), &target, sizeof(target));
    return at + sizeof(kJumpThroughNext) + sizeof(target);
  }
}

uint8_t* emit_moved(uint8_t* at, uintptr_t place, const uint8_t* from, const Instruction& instruction) {
  switch (instruction.flow) {
  case Flow::next:
  case Flow::leave: return emit_copy(at, place, from, instruction);
  case Flow::jump: return emit_jump(at, place, instruction.target);
  case Flow::branch: return emit_branch(at, place, instruction);
  case Flow::call:  // its return address would lie in code that no unwinder knows
  case Flow::unmovable: return nullptr;
  }
  return nullptr;
}

}  // namespace rh::redirect
