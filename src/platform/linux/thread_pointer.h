// The thread pointer: different for each live thread.
#pragma once

#include <cstdint>

namespace rh::platform {

inline uintptr_t thread_pointer() {
#if defined(__x86_64__)
  uintptr_t result;
  asm("mov %%fs:0, %0" : "=r"(result));
  return result;
#elif defined(__i386__)
  uintptr_t result;
  asm("mov %%gs:0, %0" : "=r"(result));
  return result;
#else
  return reinterpret_cast<uintptr_t>(__builtin_thread_pointer());
#endif
}

}  // namespace rh::platform
