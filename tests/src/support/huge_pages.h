#pragma once

#include "base/config.h"
#include "platform/platform.h"

namespace rh {

// Whether the arena asks for huge pages unless told otherwise. In tests that take pages as long as those of some
// kernels, a large heap is one of gigabytes.
inline bool wishes_for_huge() {
  return k64Bit && !kHardened && !platform::kChargesUntouched && platform::huge_page_size() <= size_t{32} << 20;
}

}  // namespace rh
