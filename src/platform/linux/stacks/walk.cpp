#include "platform/linux/stacks/walk.h"

#include <ucontext.h>

#include "platform/linux/stacks/peek.h"

namespace rh::stacks {
namespace {

class Walk {
 public:
  Walk(Registers from, StackRange range)
      : at_(from),
        readable_(from.sp >= range.low && from.sp < range.high ? StackRange{from.sp, range.high} : StackRange{}) {}

  // Where the rule is to be looked up: within the call, not behind it.
  uintptr_t place() const { return interrupted_ ? at_.pc : at_.pc - 1; }
  // As if it were a return address.
  uintptr_t pc() const { return place() + 1; }
  bool trusted() const { return trusted_; }

  // To the caller. False at the outermost frame, and where the way ends.
  bool step(const Rule& rule) {
    interrupted_ = rule.kind == Rule::kSignal;
    switch (rule.kind) {
    case Rule::kTable: return by_table(rule);
    case Rule::kSignal: return by_signal();
    case Rule::kFramePointer: return by_frame_pointer();
    case Rule::kOutermost:
    case Rule::kNowhere: return false;
    }
    return false;
  }

 private:
  bool by_table(const Rule& rule) {
    uintptr_t caller = (rule.base == Rule::kStackPointer ? at_.sp : at_.fp) + static_cast<uintptr_t>(rule.offset);
    if (rule.base == Rule::kThroughFramePointer && !read(caller, caller)) return false;
    if (caller <= at_.sp || caller % kWord != 0) return false;
    uintptr_t fp = at_.fp;
    const auto offset = static_cast<uintptr_t>(intptr_t{rule.saved_at} * kWord);
    if (rule.saved == Rule::kLost) fp = 0;
    if (rule.saved == Rule::kBeforeCaller && !read(caller + offset, fp)) return false;
    if (rule.saved == Rule::kAtFramePointer && !read(at_.fp + offset, fp)) return false;
    at_.sp = caller;
    at_.fp = fp;
    return read(caller - kWord, at_.pc) && at_.pc != 0;
  }

  // The kernel's ucontext begins where the handler's frame ends.
  bool by_signal() {
    const uintptr_t registers = at_.sp + offsetof(ucontext_t, uc_mcontext.gregs);
    return read(registers + REG_RIP * kWord, at_.pc) && read(registers + REG_RBP * kWord, at_.fp) &&
           read(registers + REG_RSP * kWord, at_.sp);
  }

  // A function that keeps none leaves its caller out.
  bool by_frame_pointer() {
    const uintptr_t frame = at_.fp;
    trusted_ = false;
    if (frame < at_.sp || frame % kWord != 0 || !read(frame, at_.fp) || !read(frame + kWord, at_.pc)) return false;
    at_.sp = frame + 2 * kWord;
    return at_.pc != 0;
  }

  bool read(uintptr_t at, uintptr_t& to) const {
    if (at < readable_.low || at >= readable_.high || readable_.high - at < kWord) return peek(at, to);
    __builtin_memcpy(&to, reinterpret_cast<const void*>(at), kWord);
    return true;
  }

  Registers at_;
  StackRange readable_;
  bool interrupted_ = true;  // what comes first is no return address either
  bool trusted_ = true;
};

}  // namespace

uint32_t walk(Registers from, StackRange range, Own own, FindRule* find, void* context, Frame* frames, uint32_t most,
              Skipped skipped) {
  Walk walk(from, range);
  Rule rule = find(context, walk.place(), true);
  if (own == Own::left_out) {
    const uint64_t module = rule.module;
    while (rule.kind != Rule::kNowhere && rule.module == module && walk.step(rule))
      rule = find(context, walk.place(), walk.trusted());
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
    rule = find(context, walk.place(), walk.trusted());
  }
  return count;
}

}  // namespace rh::stacks
