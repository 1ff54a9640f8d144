#include "emit.h"

namespace rh::redirect {

namespace {

uint8_t* emit_word(uint8_t* at, uint32_t word) {
  __builtin_memcpy(at, &word, sizeof(word));
  return at + sizeof(word);
}

}  // namespace

uint8_t* emit_jump(uint8_t* at, uintptr_t place, uintptr_t target) {
  intptr_t distance = static_cast<intptr_t>(target - place);
  if (distance > static_cast<intptr_t>(kReach) || distance < -static_cast<intptr_t>(kReach)) return nullptr;
  return emit_word(at, 0x14000000 | (static_cast<uint32_t>(distance >> 2) & 0x03FFFFFF));
}

// Through x16, which the calling convention leaves to such veneers.
uint8_t* emit_far_jump(uint8_t* at, uintptr_t target) {
  at = emit_word(at, 0x58000050);  // ldr x16, the word after next
  at = emit_word(at, 0xD61F0200);  // br x16
  __builtin_memcpy(at, &target, sizeof(target));
  return at + sizeof(target);
}

uint8_t* emit_moved(uint8_t* at, uintptr_t place, const uint8_t* from, const Instruction& instruction) {
  switch (instruction.flow) {
  case Flow::next:
  case Flow::leave: __builtin_memcpy(at, from, instruction.length); return at + instruction.length;
  case Flow::jump: return emit_jump(at, place, instruction.target);
  case Flow::branch:
  case Flow::call:
  case Flow::unmovable: return nullptr;
  }
  return nullptr;
}

}  // namespace rh::redirect
