// Which instructions of x86 there are, and how long: one row for opcodes that follow one another and have the same
// form. After the opcode maps of Intel's manual (volume 2, appendix A; the pages of each instruction for the bits of
// VEX) and of AMD's (volume 3, appendix A). Left out, and so refused by decode(): AVX-512 and its mask registers, AMX,
// XOP, 3DNow, MPX, gathers, PadLock, SHA-512 and SM3/SM4, moves of control and debug registers, and most of what
// 0F 01 does with registers. The tests compare with the Zydis library.
#pragma once

#include <cstdint>
#include <span>

namespace rh::redirect::x86 {

enum class Map : uint8_t { one_byte, two_bytes, at_0f38, at_0f3a, vex_0f, vex_0f38, vex_0f3a };

// What stands behind the operands.
enum class Immediate : uint8_t {
  none,
  byte,
  word,
  half,          // as the operands, but never more than 4 bytes
  full,          // as the operands
  frame,         // of enter: 2 bytes and 1
  far_address,   // and the segment's 2 bytes
  near_address,  // as wide as addresses are
  short_branch,  // 1 byte
  near_branch    // 2 or 4 bytes
};

// Of the prefixes that make another instruction of an opcode, the one that is in effect.
enum Prefix : uint8_t { kNone = 1, k66 = 2, kF3 = 4, kF2 = 8, kPlain66 = kNone | k66, kAnyPrefix = 15 };

enum When : uint8_t {
  kIn32 = 1,
  kIn64 = 2,
  kBoth = kIn32 | kIn64,
  kL0 = 4,  // of VEX: 128 bits or one number
  kL1 = 8,  // 256 bits
  kL = kL0 | kL1,
  kW0 = 16,
  kW1 = 32,
  kW = kW0 | kW1,
  kThird = 64,  // VEX names a third register
  kExact = 128  // `memory` and `registers` are the first and the last byte behind the opcode
};

constexpr uint8_t kAll = 0xFF;

struct Row {
  uint8_t first, last;  // opcodes
  uint8_t prefixes = kAnyPrefix;
  uint8_t memory = 0;     // by the middle bits of the byte behind the opcode, which is there if any is set:
  uint8_t registers = 0;  // defined for an operand in memory, and for registers alone
  Immediate immediate = Immediate::none;
  uint8_t when = kBoth;

  constexpr bool has_operands() const { return (memory | registers) != 0; }
};

std::span<const Row> rows_of(Map map);

// Whether the instruction may be locked, with its operand in memory.
bool can_lock(Map map, uint8_t opcode, unsigned middle);

}  // namespace rh::redirect::x86
