// The decoder for x86 against the Zydis library, in both modes of the processor: whatever it accepts, Zydis accepts and
// tells the same of; and it accepts what Zydis does, but for the kinds that left_out() names.
#include "redirect/patcher/decode_x86.h"

#include <Zydis/Decoder.h>
#include <gtest/gtest.h>
#include <windows.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include "code.h"

namespace {

using rh::redirect::Flow;
using rh::redirect::Instruction;
using rh::redirect::x86::Mode;

constexpr size_t kLongest = 15;

// ---- what Zydis says -------------------------------------------------------------------------------------------

struct Known {
  ZydisDecodedInstruction raw;
  const uint8_t* code;
};

bool known(Mode mode, const uint8_t* code, size_t available, Known* result) {
  static const auto decoder_of = [](ZydisMachineMode machine, ZydisStackWidth width) {
    ZydisDecoder decoder;
    ZydisDecoderInit(&decoder, machine, width);
    return decoder;
  };
  static const ZydisDecoder narrow = decoder_of(ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32);
  static const ZydisDecoder wide = decoder_of(ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  result->code = code;
  return ZYAN_SUCCESS(
      ZydisDecoderDecodeInstruction(mode == Mode::bits_64 ? &wide : &narrow, nullptr, code, available, &result->raw));
}

bool has(const Known& one, ZydisInstructionAttributes attributes) { return (one.raw.attributes & attributes) != 0; }

bool is_legacy(const Known& one, ZydisOpcodeMap map) {
  return one.raw.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY && one.raw.opcode_map == map;
}

Flow flow_of(const Known& one) {
  if (one.raw.raw.imm[0].is_relative && has(one, ZYDIS_ATTRIB_HAS_OPERANDSIZE)) return Flow::unmovable;
  switch (one.raw.mnemonic) {
  case ZYDIS_MNEMONIC_JMP:
    if (one.raw.raw.imm[0].is_relative) return Flow::jump;
    return one.raw.opcode == 0xEA ? Flow::unmovable : Flow::leave;
  case ZYDIS_MNEMONIC_CALL: return one.raw.opcode == 0x9A ? Flow::unmovable : Flow::call;
  case ZYDIS_MNEMONIC_RET:
  case ZYDIS_MNEMONIC_INT3:
  case ZYDIS_MNEMONIC_UD2: return Flow::leave;
  case ZYDIS_MNEMONIC_INT: return one.raw.raw.imm[0].value.u == 0x29 ? Flow::leave : Flow::next;
  default: break;
  }
  bool conditional = one.raw.meta.category == ZYDIS_CATEGORY_COND_BR && one.raw.opcode >= 0x70 && one.raw.opcode < 0x90;
  if (conditional) return Flow::branch;
  return one.raw.raw.imm[0].is_relative ? Flow::unmovable : Flow::next;
}

bool is_padding(const Known& one) {
  return is_legacy(one, ZYDIS_OPCODE_MAP_0F)
             ? one.raw.opcode == 0x1F
             : is_legacy(one, ZYDIS_OPCODE_MAP_DEFAULT) && (one.raw.opcode == 0xCC || one.raw.opcode == 0x90);
}

Instruction told(const Known& one) {
  Instruction result = {.length = one.raw.length,
                        .flow = flow_of(one),
                        .padding = is_padding(one),
                        .condition = static_cast<uint8_t>(one.raw.opcode & 0x0F)};
  if (!has(one, ZYDIS_ATTRIB_IS_RELATIVE)) return result;
  uintptr_t next = reinterpret_cast<uintptr_t>(one.code) + one.raw.length;
  if (one.raw.raw.imm[0].is_relative) {
    result.target = next + static_cast<uintptr_t>(one.raw.raw.imm[0].value.s);
  } else {
    result.field = one.raw.raw.disp.offset;
    result.data = next + static_cast<uintptr_t>(one.raw.raw.disp.value);
  }
  return result;
}

// ---- the kinds that are refused ------------------------------------------------------------------------------

bool of_extension_left_out(const Known& one) {
  constexpr ZydisISAExt kLeftOut[] = {ZYDIS_ISA_EXT_AMD3DNOW,  ZYDIS_ISA_EXT_AMX_TILE, ZYDIS_ISA_EXT_AMX_INT8,
                                      ZYDIS_ISA_EXT_AMX_BF16,  ZYDIS_ISA_EXT_AMX_FP16, ZYDIS_ISA_EXT_AVX2GATHER,
                                      ZYDIS_ISA_EXT_AVX512VEX, ZYDIS_ISA_EXT_FMA4,     ZYDIS_ISA_EXT_XOP,
                                      ZYDIS_ISA_EXT_KNC,       ZYDIS_ISA_EXT_KNCE,     ZYDIS_ISA_EXT_KNCV,
                                      ZYDIS_ISA_EXT_MPX,       ZYDIS_ISA_EXT_PADLOCK,  ZYDIS_ISA_EXT_SHA512,
                                      ZYDIS_ISA_EXT_SM3,       ZYDIS_ISA_EXT_SM4};
  return std::find(std::begin(kLeftOut), std::end(kLeftOut), one.raw.meta.isa_ext) != std::end(kLeftOut);
}

bool left_out(Mode mode, const Known& one) {
  bool two_bytes = is_legacy(one, ZYDIS_OPCODE_MAP_0F);
  if (two_bytes && one.raw.opcode >= 0x20 && one.raw.opcode <= 0x23) return true;    // control and debug registers
  if (two_bytes && (one.raw.opcode == 0x1A || one.raw.opcode == 0x1B)) return true;  // MPX, or no operation before it
  if (two_bytes && one.raw.opcode == 0x01 && one.raw.raw.modrm.mod == 3) return true;
  if (mode == Mode::bits_64 && has(one, ZYDIS_ATTRIB_IS_RELATIVE)) {
    bool branch = one.raw.raw.imm[0].is_relative;
    if (!branch && has(one, ZYDIS_ATTRIB_HAS_ADDRESSSIZE)) return true;
    if (branch && has(one, ZYDIS_ATTRIB_HAS_OPERANDSIZE) && one.raw.raw.imm[0].size != 8) return true;
  }
  return of_extension_left_out(one);
}

// ---- comparing -----------------------------------------------------------------------------------------------

std::string text(const Instruction& one) {
  return testing::PrintToString(std::vector<uint64_t>{one.length, static_cast<uint64_t>(one.flow), one.padding,
                                                      one.condition, one.target, one.field, one.data});
}

bool same(const Instruction& left, const Instruction& right) {
  return left.length == right.length && left.flow == right.flow && left.padding == right.padding &&
         left.condition == right.condition && left.target == right.target && left.field == right.field &&
         left.data == right.data;
}

class Comparison {
 public:
  explicit Comparison(Mode mode) : mode_(mode) {}
  ~Comparison() {
    EXPECT_EQ(differences_, 0u) << "the first are above";
    EXPECT_GT(accepted_, 0u);
  }

  void compare(const uint8_t* code, size_t available) {
    Instruction ours;
    Known theirs;
    bool we = rh::redirect::x86::decode(mode_, code, available, &ours);
    bool they = known(mode_, code, available, &theirs);
    accepted_ += we;
    if (we && !they) return differs(code, available, "accepted");
    if (we && !same(ours, told(theirs))) return differs(code, available, text(ours) + ", not " + text(told(theirs)));
    if (they && !we && !left_out(mode_, theirs)) differs(code, available, "refused");
  }
  void compare(const std::vector<uint8_t>& code) { compare(code.data(), code.size()); }

 private:
  void differs(const uint8_t* code, size_t available, const std::string& how) {
    if (++differences_ > 20) return;
    char byte[4];
    std::string bytes;
    for (size_t i = 0; i < std::min(available, kLongest); ++i) {
      snprintf(byte, sizeof(byte), "%02X ", code[i]);
      bytes += byte;
    }
    ADD_FAILURE() << (mode_ == Mode::bits_64 ? "64" : "32") << " bits: " << bytes << how;
  }

  Mode mode_;
  size_t accepted_ = 0, differences_ = 0;
};

template <typename Body> void in_both_modes(Body body) {
  for (Mode mode : {Mode::bits_32, Mode::bits_64}) {
    Comparison comparison(mode);
    body(&comparison);
  }
}

constexpr uint8_t kScaled[] = {0x00, 0x25, 0x64, 0xE5};  // what stands behind an operand byte that names no base

// All operand bytes behind what comes before, each with a tail of a displacement and an immediate.
void compare_operands(Comparison* comparison, const Bytes& before) {
  Bytes code = before;
  code.resize(before.size() + kLongest);
  for (unsigned operand = 0; operand < 256; ++operand) {
    for (uint8_t scaled : kScaled) {
      code[before.size()] = static_cast<uint8_t>(operand);
      code[before.size() + 1] = scaled;
      for (size_t i = 2; i < kLongest; ++i) code[before.size() + i] = static_cast<uint8_t>(0x89 + 0x11 * i);
      comparison->compare(code);
      bool scaled_is_there = operand < 0xC0 && (operand & 7) == 4;
      if (!scaled_is_there) break;
    }
  }
}

TEST(decoder, tells_what_zydis_tells_of_every_opcode) {
  in_both_modes([](Comparison* comparison) {
    const Bytes prefixes[] = {{},           {0x66},       {0xF3},       {0xF2},      {0x48},       {0x66, 0x48},
                              {0xF3, 0x4F}, {0x67},       {0x66, 0x67}, {0xF0},      {0x66, 0xF3}, {0xF2, 0x66},
                              {0xF2, 0xF3}, {0xF3, 0xF2}, {0x48, 0x66}, {0x64, 0x47}};
    const Bytes maps[] = {{}, {0x0F}, {0x0F, 0x38}, {0x0F, 0x3A}};
    for (const Bytes& prefix : prefixes)
      for (const Bytes& map : maps)
        for (unsigned opcode = 0; opcode < 256; ++opcode)
          compare_operands(comparison, prefix + map + Bytes{static_cast<uint8_t>(opcode)});
  });
}

TEST(decoder, tells_what_zydis_tells_of_every_opcode_of_vex) {
  in_both_modes([](Comparison* comparison) {
    for (unsigned bits = 0; bits < 256; ++bits) {
      bool register_looked_at = (bits >> 3 & 0xF) % 15 == 0;  // none or another
      if (!register_looked_at) continue;
      uint8_t last = static_cast<uint8_t>(bits);
      for (unsigned opcode = 0; opcode < 256; ++opcode) {
        uint8_t code = static_cast<uint8_t>(opcode);
        compare_operands(comparison, {0xC5, last, code});
        for (uint8_t map : {0xE0, 0xE1, 0xE2, 0xE3, 0xE4, 0xC2, 0x61})
          compare_operands(comparison, {0xC4, map, last, code});
      }
    }
    for (uint8_t prefix : {0x66, 0xF0, 0xF2, 0xF3, 0x48, 0x67, 0x65})
      compare_operands(comparison, {prefix, 0xC5, 0xF8, 0x58});
  });
}

TEST(decoder, tells_what_zydis_tells_of_random_bytes) {
  in_both_modes([](Comparison* comparison) {
    std::mt19937_64 random(1);
    for (int i = 0; i < 1000000; ++i) {
      std::array<uint64_t, 2> bytes = {random(), random()};
      // Half of them begin with a likely byte.
      constexpr uint8_t kBegins[] = {0x0F, 0x66, 0xF2, 0xF3, 0x48, 0xC5, 0xC4, 0x67};
      if (i % 2 != 0) bytes[0] = (bytes[0] & ~uint64_t{0xFF}) | kBegins[i / 2 % 8];
      comparison->compare(reinterpret_cast<const uint8_t*>(bytes.data()), 1 + static_cast<size_t>(bytes[1] >> 60));
    }
  });
}

TEST(decoder, knows_where_the_bytes_end) {
  in_both_modes([](Comparison* comparison) {
    // An opcode for each form of what stands behind it.
    for (const Bytes& code : {Bytes{0xB8, 1, 2, 3, 4},
                              {0xC8, 1, 2, 3},
                              {0x80, 0x84, 0x24, 1, 2, 3, 4, 5},
                              {0xE9, 1, 2, 3, 4},
                              {0x0F, 0x84, 1, 2, 3, 4},
                              {0xF7, 0x05, 1, 2, 3, 4, 5, 6, 7, 8},
                              {0xA1, 1, 2, 3, 4, 5, 6, 7, 8},
                              {0xC4, 0xE3, 0x7D, 0x19, 0x05, 1, 2, 3, 4, 5},
                              {0x66, 0x0F, 0x3A, 0x0F, 0x44, 0x24, 1, 2}})
      for (size_t prefixes = 0; prefixes < kLongest + 1; ++prefixes) {
        Bytes all = Bytes(prefixes, 0x2E) + code;
        for (size_t available = 0; available <= all.size(); ++available) comparison->compare(all.data(), available);
      }
  });
}

// Each byte of the system's DLLs, taken for the first of an instruction.
TEST(decoder, tells_what_zydis_tells_of_compiled_code) {
  in_both_modes([](Comparison* comparison) {
    for (const wchar_t* name : {L"ntdll.dll", L"kernelbase.dll", L"ucrtbase.dll", L"msvcrt.dll"}) {
      const auto* base = reinterpret_cast<const uint8_t*>(LoadLibraryW(name));
      ASSERT_NE(base, nullptr);
      const auto* dos = reinterpret_cast<const IMAGE_DOS_HEADER*>(base);
      const auto* headers = reinterpret_cast<const IMAGE_NT_HEADERS*>(base + dos->e_lfanew);
      const auto* text = IMAGE_FIRST_SECTION(headers);
      size_t size = std::min<size_t>(text->Misc.VirtualSize, 1 << 20);
      ASSERT_NE(text->Characteristics & IMAGE_SCN_MEM_EXECUTE, 0u);
      for (size_t i = 0; i < size; ++i) comparison->compare(base + text->VirtualAddress + i, size - i);
    }
  });
}

}  // namespace
