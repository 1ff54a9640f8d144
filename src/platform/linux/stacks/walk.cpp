#include "platform/linux/stacks/walk.h"

#include <ucontext.h>

#include "platform/linux/stacks/peek.h"

namespace rh::stacks {

bool Walk::step_otherwise(const Rule& rule) {
  interrupted_ = rule.kind == Rule::kSignal;
  if (rule.kind == Rule::kSignal) return by_signal();
  return rule.kind == Rule::kFramePointer && by_frame_pointer();
}

// The kernel's ucontext begins where the handler's frame ends.
bool Walk::by_signal() {
  const uintptr_t registers = at_.sp + offsetof(ucontext_t, uc_mcontext.gregs);
  return read(registers + REG_RIP * kWord, at_.pc) && read(registers + REG_RBP * kWord, at_.fp) &&
         read(registers + REG_RSP * kWord, at_.sp);
}

// A function that keeps none leaves its caller out.
bool Walk::by_frame_pointer() {
  const uintptr_t frame = at_.fp;
  trusted_ = false;
  if (frame < at_.sp || frame % kWord != 0 || !read(frame, at_.fp) || !read(frame + kWord, at_.pc)) return false;
  at_.sp = frame + 2 * kWord;
  return at_.pc != 0;
}

bool Walk::read_far(uintptr_t at, uintptr_t& to) { return peek(at, to); }

}  // namespace rh::stacks
