// Requests that no allocator can serve, and how answers are looked at.
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/process.h"

namespace contract {

constexpr std::size_t kMost = SIZE_MAX;
constexpr int kUntouched = 4242;  // in errno

constexpr std::size_t impossible[] = {kMost,         kMost - 1,        kMost - 15,    kMost - 16,
                                      kMost - 4095,  kMost - 4096,     kMost - 65536, kMost - MiB,
                                      kMost / 2 + 1,  // PTRDIFF_MAX + 1
                                      kMost / 2 + 2, kMost / 2 + 4097, kMost / 4 * 3};

inline bool aligned(const void* block, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(block) % alignment == 0;
}

}  // namespace contract
