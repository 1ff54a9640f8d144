#include "handles.h"

namespace rh::heaps {

namespace {

// Stands in a place while it is filled or cleared. No heap lies there.
const void* const kBusy = reinterpret_cast<const void*>(1);

}  // namespace

bool Handles::add(const void* handle, Heap* heap, uint32_t flags) {
  size_t set = set_of(handle);
  for (size_t place = 0; place < kPlaces; ++place) {
    std::atomic<const void*>& at = handles_[set][place];
    const void* none = nullptr;
    if (!at.compare_exchange_strong(none, kBusy, std::memory_order_acquire)) continue;
    Served& served = served_[set][place];
    served.heap = heap;
    served.flags = flags;
    served.locked.store(0, std::memory_order_relaxed);
    served.holder.store(0, std::memory_order_relaxed);
    at.store(handle, std::memory_order_release);
    return true;
  }
  return false;
}

Heap* Handles::remove(const void* handle) {
  if (!can_be(handle)) return nullptr;
  size_t set = set_of(handle);
  for (size_t place = 0; place < kPlaces; ++place) {
    std::atomic<const void*>& at = handles_[set][place];
    const void* expected = handle;
    if (!at.compare_exchange_strong(expected, kBusy, std::memory_order_acquire)) continue;
    Heap* heap = served_[set][place].heap;
    at.store(nullptr, std::memory_order_release);
    return heap;
  }
  return nullptr;
}

}  // namespace rh::heaps
