#include "stack_library.h"

#include "platform/platform.h"

[[gnu::noinline]] static unsigned within(uintptr_t* frames, unsigned most) {
  const unsigned count = rh::platform::stack(frames, most);
  asm volatile("" ::: "memory");
  return count;
}

unsigned stack_from_library(uintptr_t* frames, unsigned most) {
  const unsigned count = within(frames, most);
  asm volatile("" ::: "memory");
  return count;
}
