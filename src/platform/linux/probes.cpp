#include "platform/linux/probes.h"

#include "base/bits.h"
#include "platform/platform.h"

namespace rh::platform {

#if defined(RH_PROBE_ADDRESS)

namespace {

uintptr_t word_of(uint64_t value) { return value < UINTPTR_MAX ? static_cast<uintptr_t>(value) : UINTPTR_MAX; }

}  // namespace

void probe_allocated(const void* block, uint64_t size, uint64_t stands_for) {
  RH_PROBE_VALUE_1 = address_of(block);
  RH_PROBE_VALUE_2 = word_of(size);
  RH_PROBE_VALUE_3 = word_of(stands_for);
  asm volatile(RH_PROBE("otel_memory", "alloc", RH_PROBE_IN_3) : : "r"(first), "r"(second), "r"(third));
}

void probe_freed(const void* block) {
  RH_PROBE_VALUE_1 = address_of(block);
  asm volatile(RH_PROBE("otel_memory", "free", RH_PROBE_IN_1) : : "r"(first));
}

void probe_misuse(const char* message, uintptr_t block) {
  RH_PROBE_VALUE_1 = address_of(message);
  RH_PROBE_VALUE_2 = block;
  asm volatile(RH_PROBE("reheap", "misuse", RH_PROBE_IN_2) : : "r"(first), "r"(second) : "memory");
}

#else

void probe_allocated(const void*, uint64_t, uint64_t) {}
void probe_freed(const void*) {}
void probe_misuse(const char*, uintptr_t) {}

#endif

}  // namespace rh::platform
