// What a thread does between two looks at what another is about to write.
#pragma once

#include "base/compiler.h"

namespace rh {

RH_INLINE void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  asm volatile("yield");
#endif
}

}  // namespace rh
