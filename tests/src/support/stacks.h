// Functions of which it is known where they return to.
#pragma once

#include <algorithm>

#include "platform/platform.h"

namespace {

using rh::platform::kMostFrames;

#if defined(__clang__)
#define APART [[gnu::noinline]]
#else
#define APART [[gnu::noinline, gnu::noclone]]
#endif

struct Stack {
  uintptr_t frames[kMostFrames] = {};
  unsigned count = 0;

  // Where `frame` stands in it; count if nowhere.
  size_t place(uintptr_t frame) const { return static_cast<size_t>(std::find(frames, frames + count, frame) - frames); }
  bool has(uintptr_t frame) const { return place(frame) != count; }
};

uintptr_t return_address(void* address) { return reinterpret_cast<uintptr_t>(address); }
#define RETURN_ADDRESS return_address(__builtin_return_address(0))

// Where the functions below return to, the innermost first.
struct Calls {
  uintptr_t inner = 0, middle = 0, outer = 0;

  bool are_in(const Stack& stack) const {
    const size_t place = stack.place(inner);
    return place + 2 < stack.count && stack.frames[place + 1] == middle && stack.place(outer) > place + 1;
  }
};

APART void call_inner(Stack& stack, Calls& calls, unsigned most) {
  calls.inner = RETURN_ADDRESS;
  stack.count = rh::platform::stack(stack.frames, most);
  asm volatile("" ::: "memory");
}

APART void call_middle(Stack& stack, Calls& calls, unsigned most) {
  calls.middle = RETURN_ADDRESS;
  call_inner(stack, calls, most);
  asm volatile("" ::: "memory");
}

APART void call_outer(Stack& stack, Calls& calls, unsigned most = kMostFrames) {
  calls.outer = RETURN_ADDRESS;
  call_middle(stack, calls, most);
  asm volatile("" ::: "memory");
}

}  // namespace
