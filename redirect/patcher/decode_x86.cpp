#include <Zydis/Decoder.h>

#include "decode.h"

namespace rh::redirect {

namespace {

bool decode_raw(const uint8_t* code, size_t available, ZydisDecodedInstruction* raw) {
  constexpr bool k64 = sizeof(void*) == 8;
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, k64 ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LEGACY_32,
                   k64 ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32);
  return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, nullptr, code, available, raw));
}

bool in(uint8_t opcode, uint8_t first, uint8_t last) { return opcode >= first && opcode <= last; }

Flow flow_of_group_5(uint8_t operation) {
  if (in(operation, 2, 3)) return Flow::call;
  return in(operation, 4, 5) ? Flow::leave : Flow::next;
}

Flow flow_of_one_byte(const ZydisDecodedInstruction& raw, const uint8_t* code) {
  switch (raw.opcode) {
  case 0xE8: return Flow::call;
  case 0xE9:
  case 0xEB: return Flow::jump;
  case 0xC2:
  case 0xC3:
  case 0xCA:
  case 0xCB:
  case 0xCC: return Flow::leave;
  case 0xCD: return code[1] == 0x29 ? Flow::leave : Flow::next;  // __fastfail
  case 0xFF: return flow_of_group_5(raw.raw.modrm.reg);
  case 0x9A:
  case 0xEA: return Flow::unmovable;  // to another segment
  default: break;
  }
  if (in(raw.opcode, 0x70, 0x7F)) return Flow::branch;
  return raw.raw.imm[0].is_relative ? Flow::unmovable : Flow::next;  // loop, jcxz, xbegin
}

Flow flow_of(const ZydisDecodedInstruction& raw, const uint8_t* code) {
  if (raw.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY) return Flow::next;
  if (raw.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT) return flow_of_one_byte(raw, code);
  if (raw.opcode_map != ZYDIS_OPCODE_MAP_0F) return Flow::next;
  if (in(raw.opcode, 0x80, 0x8F)) return Flow::branch;
  return raw.opcode == 0x0B ? Flow::leave : Flow::next;  // ud2
}

bool is_padding(const ZydisDecodedInstruction& raw) {
  if (raw.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY) return false;
  if (raw.opcode_map == ZYDIS_OPCODE_MAP_0F) return raw.opcode == 0x1F;  // the long no-operation
  return raw.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && (raw.opcode == 0xCC || raw.opcode == 0x90);
}

}  // namespace

bool decode(const uint8_t* code, size_t available, Instruction* instruction) {
  ZydisDecodedInstruction raw;
  if (!decode_raw(code, available, &raw)) return false;
  *instruction = {.length = raw.length,
                  .flow = flow_of(raw, code),
                  .padding = is_padding(raw),
                  .condition = static_cast<uint8_t>(raw.opcode & 0x0F)};
  if ((raw.attributes & ZYDIS_ATTRIB_IS_RELATIVE) == 0) return true;
  uintptr_t next = reinterpret_cast<uintptr_t>(code) + raw.length;
  const auto& immediate = raw.raw.imm[0];
  if (immediate.is_relative) {
    instruction->target = next + static_cast<uintptr_t>(immediate.value.s);
    // With an operand-size prefix the instruction pointer is cut to 16 bits.
    if (immediate.size == 16) instruction->flow = Flow::unmovable;
  } else {
    instruction->field = raw.raw.disp.offset;
    instruction->data = next + static_cast<uintptr_t>(raw.raw.disp.value);
  }
  return true;
}

}  // namespace rh::redirect
