// What a thread does between two looks at what another is about to write.
#pragma once

#include "base/compiler.h"

namespace rh {

RH_INLINE void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__riscv)
  asm volatile(".insn i 0x0f, 0, x0, x0, 0x010");  // pause: a fence of nothing to processors that do not know it
#else
  asm volatile("yield");
#endif
}

}  // namespace rh
