// What is said of a misused block on guarded pages: one line, with who made it and who freed it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/platform.h"

namespace rh::guards {

// Who did something to a block, and from where.
struct Event {
  static constexpr unsigned kMostFrames = 24;
  uint64_t thread = 0;  // 0: it did not happen
  unsigned depth = 0;
  uintptr_t frames[kMostFrames] = {};  // the innermost first
};

// The calling thread does it, now.
void note(Event& event);

struct Described {
  uintptr_t start = 0;  // 0: there never was a block
  size_t size = 0;
  bool is_live = false;
  const Event *made = nullptr, *freed = nullptr;
};

// `address`, where memory was refused, lies in the block or beside it. Returns: what the OS does then follows.
void tell_fault(const Described& block, uintptr_t address, platform::Access access);

// These end the process. `function` was called with `pointer`, which is no live block's start; `twice`: any longer.
[[noreturn]] void fail_call(const Described& block, const char* function, const void* pointer, bool twice);
[[noreturn]] void fail_written(const Described& block);

}  // namespace rh::guards
