#include "heap/retained.h"

namespace rh::retained {

// Read at every slow free, seldom written.
alignas(64) constinit std::atomic<bool> g_is_much{false};
alignas(64) constinit std::atomic<size_t> g_freed{0};
constinit std::atomic<size_t> g_sparse{0};

namespace {

// What heaps hold back is mostly in use, or of the few classes that few threads need.
constexpr size_t kWorthCollecting = size_t{8} << 20;

alignas(64) constinit std::atomic<size_t> g_held{0};
constinit std::atomic<size_t> g_held_after{0};  // when all heaps had been collected from

}  // namespace

void add(size_t bytes) {
  size_t after = g_held_after.load(std::memory_order_relaxed);
  size_t held = g_held.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (held >= after + after / 8 + kWorthCollecting && !is_much()) g_is_much.store(true, std::memory_order_relaxed);
}

void subtract(size_t bytes) {
  size_t held = g_held.fetch_sub(bytes, std::memory_order_relaxed) - bytes;
  if (held < g_held_after.load(std::memory_order_relaxed)) g_held_after.store(held, std::memory_order_relaxed);
}

void begin_count() {
  g_is_much.store(false, std::memory_order_relaxed);
  g_held_after.store(g_held.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

}  // namespace rh::retained
