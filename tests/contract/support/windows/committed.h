// Memory of this process that is committed and not of a file. (Wine's own figure of that is the resident memory.)
#pragma once

#include <windows.h>

#include <cstddef>

namespace contract {

inline std::size_t committed() {
  std::size_t sum = 0;
  MEMORY_BASIC_INFORMATION part = {};
  for (char* at = nullptr; VirtualQuery(at, &part, sizeof part) != 0;
       at = static_cast<char*>(part.BaseAddress) + part.RegionSize) {
    if (part.State == MEM_COMMIT && part.Type == MEM_PRIVATE) sum += part.RegionSize;
  }
  return sum;
}

}  // namespace contract
