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

// As each_of_many, whose functions would not be compiled for such registers.
[[gnu::target("avx2")]] void clear_wide(void* block, size_t size) {
  ThirtyTwo* first = static_cast<ThirtyTwo*>(block);
  ThirtyTwo* last_four = first + size / sizeof(ThirtyTwo) - 4;
  for (; first < last_four; first += 4) {
    first[0] = first[1] = first[2] = first[3] = ThirtyTwo{};
    asm volatile("" : : : "memory");  // compilers make a call of memset of it
  }
  last_four[0] = last_four[1] = last_four[2] = last_four[3] = ThirtyTwo{};
}

[[gnu::target("avx2")]] bool is_clear_wide(const void* block, size_t size) {
  const ThirtyTwo* first = static_cast<const ThirtyTwo*>(block);
  const ThirtyTwo* last_four = first + size / sizeof(ThirtyTwo) - 4;
  ThirtyTwo all = last_four[0] | last_four[1] | last_four[2] | last_four[3];
  for (; first < last_four; first += 4) all |= first[0] | first[1] | first[2] | first[3];
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
