// A patch that is ready to be written: the jump over a function's entry, and where its first instructions are now.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emit.h"

namespace rh::redirect {

struct Patch {
  uint8_t* entry = nullptr;
  uint8_t jump[kJumpSize] = {};
  const uint8_t* original = nullptr;  // the trampoline
  // Where the moved instructions begin, counted from the entry and from the trampoline.
  struct Move {
    uint8_t from, to;
  };
  Move moves[kJumpSize] = {};
  uint8_t move_count = 0;
};

}  // namespace rh::redirect
