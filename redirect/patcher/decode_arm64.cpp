#include "decode.h"

namespace rh::redirect {

namespace {

uint32_t word_at(const uint8_t* code) {
  uint32_t word = 0;
  __builtin_memcpy(&word, code, sizeof(word));
  return word;
}

// The signed field of `bits` bits that begins at bit `low`, in bytes: such fields count instructions.
uintptr_t distance(uint32_t word, unsigned low, unsigned bits) {
  int32_t value = static_cast<int32_t>(word << (32 - low - bits)) >> (32 - bits);
  return static_cast<uintptr_t>(static_cast<intptr_t>(value) * 4);
}

}  // namespace

// The forms that depend on where they stand, as the Arm Architecture Reference Manual, C4.1, encodes them.
bool decode(const uint8_t* code, size_t available, Instruction* instruction) {
  if (available < 4) return false;
  uint32_t word = word_at(code);
  if (word == 0) return false;  // udf
  uintptr_t here = reinterpret_cast<uintptr_t>(code);
  *instruction = {.length = 4};
  instruction->padding = word == 0xD503201F;  // nop
  if ((word & 0x7C000000) == 0x14000000) {    // b, bl
    instruction->flow = (word >> 31) != 0 ? Flow::call : Flow::jump;
    instruction->target = here + distance(word, 0, 26);
  } else if ((word & 0xFF000000) == 0x54000000 ||  // b.cond
             (word & 0x7E000000) == 0x34000000) {  // cbz, cbnz
    instruction->flow = Flow::branch;
    instruction->target = here + distance(word, 5, 19);
  } else if ((word & 0x7E000000) == 0x36000000) {  // tbz, tbnz
    instruction->flow = Flow::branch;
    instruction->target = here + distance(word, 5, 14);
  } else if ((word & 0x1F000000) == 0x10000000 ||  // adr, adrp
             (word & 0x3B000000) == 0x18000000) {  // ldr from a literal
    instruction->flow = Flow::unmovable;
  } else if ((word & 0xFE000000) == 0xD6000000) {  // br, blr, ret
    instruction->flow = (word & 0x00600000) == 0x00200000 ? Flow::call : Flow::leave;
  } else if ((word & 0xFFE0001F) == 0xD4200000) {  // brk
    instruction->flow = Flow::leave;
  }
  return true;
}

}  // namespace rh::redirect
