#include "platform/linux/probes.h"

#include "base/bits.h"
#include "base/compiler.h"
#include "platform/platform.h"

namespace rh::platform {

#if defined(RH_PROBE_ADDRESS)

namespace {

uintptr_t word_of(uint64_t value) { return value < UINTPTR_MAX ? static_cast<uintptr_t>(value) : UINTPTR_MAX; }

}  // namespace

// Each is one place, not one wherever it is called. Between values in registers and the probe nothing may be called.
RH_COLD void probe_allocated(const void* block, uint64_t size, uint64_t stands_for) {
  const uintptr_t words[] = {address_of(block), word_of(size), word_of(stands_for)};
  RH_PROBE_VALUE_1 = words[0];
  RH_PROBE_VALUE_2 = words[1];
  RH_PROBE_VALUE_3 = words[2];
  asm volatile(RH_PROBE("otel_memory", "alloc", RH_PROBE_IN_3) : : "r"(first), "r"(second), "r"(third));
}

RH_COLD void probe_freed(const void* block) {
  const uintptr_t word = address_of(block);
  RH_PROBE_VALUE_1 = word;
  asm volatile(RH_PROBE("otel_memory", "free", RH_PROBE_IN_1) : : "r"(first));
}

RH_COLD void probe_misuse(const char* message, uintptr_t block) {
  const uintptr_t word = address_of(message);
  RH_PROBE_VALUE_1 = word;
  RH_PROBE_VALUE_2 = block;
  asm volatile(RH_PROBE("reheap", "misuse", RH_PROBE_IN_2) : : "r"(first), "r"(second) : "memory");
}

#else

void probe_allocated(const void*, uint64_t, uint64_t) {}
void probe_freed(const void*) {}
void probe_misuse(const char*, uintptr_t) {}

#endif

}  // namespace rh::platform
