// How much of a block is in memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace recorder {

// KiB of the pages that hold part of the block, or -1 when the kernel does not say. Keeps errno.
int64_t resident_kib(const void* block, size_t bytes);

}  // namespace recorder
