// Addresses from `begin` to before `end`.
#pragma once

#include <cstdint>

namespace rh::redirect {

struct Range {
  uintptr_t begin = 0;
  uintptr_t end = 0;

  bool holds(uintptr_t address) const { return address >= begin && address < end; }
  bool holds(const void* pointer) const { return holds(reinterpret_cast<uintptr_t>(pointer)); }
};

}  // namespace rh::redirect
