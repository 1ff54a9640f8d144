#include "hardened/zeros.h"

#include <atomic>

#include "platform/vectors.h"

namespace rh::hardened {

#if defined(__x86_64__)

namespace {

// Whether there are registers of 32 bytes; not before somebody has looked.
constinit std::atomic<bool> g_is_wide{false};

// Wherever a Sixteen may lie.
using ThirtyTwo [[gnu::vector_size(32), gnu::may_alias, gnu::aligned(kBlockAlign)]] = uint64_t;

// As each_of_many, whose functions would not be compiled for such registers. By eights, written out: compilers would
// make a loop of them.
constexpr size_t kWideStep = 8;

[[gnu::target("avx2")]] RH_INLINE void clear_wide_step(ThirtyTwo* at) {
  at[0] = at[1] = at[2] = at[3] = at[4] = at[5] = at[6] = at[7] = ThirtyTwo{};
  asm volatile("" : : : "memory");  // compilers make a call of memset of it
}

[[gnu::target("avx2")]] void clear_wide(void* block, size_t size) {
  ThirtyTwo* first = static_cast<ThirtyTwo*>(block);
  ThirtyTwo* last = first + size / sizeof(ThirtyTwo) - kWideStep;
  for (; first < last; first += kWideStep) clear_wide_step(first);
  clear_wide_step(last);
}

[[gnu::target("avx2")]] bool is_clear_wide(const void* block, size_t size) {
  const ThirtyTwo* first = static_cast<const ThirtyTwo*>(block);
  const ThirtyTwo* last = first + size / sizeof(ThirtyTwo) - kWideStep;
  ThirtyTwo even = last[0] | last[2] | last[4] | last[6], odd = last[1] | last[3] | last[5] | last[7];
  for (; first < last; first += kWideStep) {
    even = even | first[0] | first[2] | first[4] | first[6];
    odd = odd | first[1] | first[3] | first[5] | first[7];
  }
  const ThirtyTwo all = even | odd;
  return (all[0] | all[1] | all[2] | all[3]) == 0;
}

}  // namespace

void look_at_processor() { g_is_wide.store(platform::has_avx2(), std::memory_order_relaxed); }

static bool is_wide() { return g_is_wide.load(std::memory_order_relaxed); }

#else

void look_at_processor() {}

static constexpr bool is_wide() { return false; }
static void clear_wide(void*, size_t) {}
static bool is_clear_wide(const void*, size_t) { return false; }

#endif

void clear_long(void* block, size_t size) {
  if (is_wide()) return clear_wide(block, size);
  clear_many(block, size);
}

bool is_clear_long(const void* block, size_t size) {
  if (is_wide()) return is_clear_wide(block, size);
  return is_clear_many(block, size);
}

}  // namespace rh::hardened
