// From a call up to the program's beginning. The stack is read as far as it is known to be the thread's own, and
// everything else by the kernel's leave, so that no table, register or stack, however wrong, makes it fault.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/linux/stacks/rule.h"

namespace rh::stacks {

// Where code is: the module's number above, the address below.
class Frame {
 public:
  static constexpr unsigned kAddressBits = 48;

  Frame() = default;
  Frame(uint64_t module, uintptr_t address) : bits_(module << kAddressBits | address) {}
  uint32_t module() const { return static_cast<uint32_t>(bits_ >> kAddressBits); }
  uintptr_t address() const { return bits_ & ((uint64_t{1} << kAddressBits) - 1); }
  uint64_t bits() const { return bits_; }
  bool operator==(const Frame&) const = default;

 private:
  uint64_t bits_;
};

struct Registers {
  uintptr_t pc, sp, fp;
};

// Memory that stays as long as the thread runs: [low, high).
struct StackRange {
  uintptr_t low, high;
};

// `trusted`: so far every frame was found by tables, and `pc` is a place that code returns to.
using FindRule = Rule(void* context, uintptr_t pc, bool trusted);

enum class Own : uint8_t { left_out, kept };

// Code whose frames are left out while no other has come, up to sixteen.
struct Skipped {
  uintptr_t begin = 0;
  size_t size = 0;
  bool holds(uintptr_t pc) const { return pc - begin < size; }
};

// The innermost frame first; of a stack deeper than `most`, the innermost ones. `own`: what becomes of the frames of
// the module that `from` is in, up to the first of another one.
uint32_t walk(Registers from, StackRange range, Own own, FindRule* find, void* context, Frame* frames, uint32_t most,
              Skipped skipped = {});

}  // namespace rh::stacks
