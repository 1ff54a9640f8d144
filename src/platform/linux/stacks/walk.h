// From a call up to the program's beginning. The stack is read as far as it is known to be the thread's own, and
// everything else by the kernel's leave, so that no table, register or stack, however wrong, makes it fault.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/compiler.h"
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

enum class Own : uint8_t { left_out, kept };

// Code whose frames are left out while no other has come, up to sixteen.
struct Skipped {
  uintptr_t begin = 0;
  size_t size = 0;
  bool holds(uintptr_t pc) const { return pc - begin < size; }
};

class Walk {
 public:
  Walk(Registers from, StackRange range)
      : at_(from),
        readable_(from.sp >= range.low && from.sp < range.high ? StackRange{from.sp, range.high} : StackRange{}) {}

  // Where the rule is to be looked up: within the call, not behind it.
  uintptr_t place() const { return interrupted_ ? at_.pc : at_.pc - 1; }
  // As if it were a return address.
  uintptr_t pc() const { return place() + 1; }
  // So far every frame was found by tables, and `place` is one that code returns to.
  bool trusted() const { return trusted_; }

  // To the caller. False at the outermost frame, and where the way ends.
  RH_INLINE bool step(const Rule& rule) {
    if (RH_UNLIKELY(rule.kind != Rule::kTable)) return step_otherwise(rule);
    interrupted_ = false;
    uintptr_t caller = (rule.base == Rule::kStackPointer ? at_.sp : at_.fp) + static_cast<uintptr_t>(rule.offset);
    if (RH_UNLIKELY(rule.base == Rule::kThroughFramePointer) && !read(caller, caller)) return false;
    if (caller <= at_.sp || caller % kWord != 0) return false;
    if (rule.saved != Rule::kUnchanged && !restore_frame_pointer(rule, caller)) return false;
    at_.sp = caller;
    return read(caller - kWord, at_.pc) && at_.pc != 0;
  }

 private:
  RH_INLINE bool read(uintptr_t at, uintptr_t& to) const {
    if (RH_UNLIKELY(at < readable_.low || at >= readable_.high || readable_.high - at < kWord)) return read_far(at, to);
    __builtin_memcpy(&to, reinterpret_cast<const void*>(at), kWord);
    return true;
  }

  RH_INLINE bool restore_frame_pointer(const Rule& rule, uintptr_t caller) {
    const uintptr_t old = at_.fp;
    at_.fp = 0;
    if (rule.saved == Rule::kLost) return true;
    return read((rule.saved == Rule::kBeforeCaller ? caller : old) +
                    static_cast<uintptr_t>(intptr_t{rule.saved_at} * kWord),
                at_.fp);
  }

  bool step_otherwise(const Rule& rule);
  bool by_signal();
  bool by_frame_pointer();
  static bool read_far(uintptr_t at, uintptr_t& to);

  Registers at_;
  StackRange readable_;
  bool interrupted_ = true;  // what comes first is no return address either
  bool trusted_ = true;
};

// The innermost frame first; of a stack deeper than `most`, the innermost ones. `find(place, trusted)` gives the rule
// of a place. `own`: what becomes of the frames of the module that `from` is in, up to the first of another one.
template <typename Find>
uint32_t walk(Registers from, StackRange range, Own own, Find find, Frame* frames, uint32_t most,
              Skipped skipped = {}) {
  Walk walk(from, range);
  Rule rule = find(walk.place(), true);
  if (own == Own::left_out) {
    const uint64_t module = rule.module;
    while (rule.kind != Rule::kNowhere && rule.module == module && walk.step(rule))
      rule = find(walk.place(), walk.trusted());
    if (rule.module == module) return 0;
  }
  constexpr unsigned kMostSkipped = 16;
  uint32_t count = 0, passed = 0;
  while (rule.kind != Rule::kNowhere && count != most) {
    const bool skips = count == 0 && passed != kMostSkipped && skipped.holds(walk.pc());
    if (skips)
      ++passed;
    else
      frames[count++] = Frame(rule.module, walk.pc());
    if (!walk.step(rule)) break;
    rule = find(walk.place(), walk.trusted());
  }
  return count;
}

}  // namespace rh::stacks
