// A figure that one thread at a time writes and any thread may read, so it needs no read-modify-write.
#pragma once

#include <atomic>
#include <cstddef>

namespace rh {

class Counter {
 public:
  constexpr Counter() = default;
  size_t value() const { return value_.load(std::memory_order_relaxed); }
  void set(size_t value) { value_.store(value, std::memory_order_relaxed); }
  void add(size_t amount) { set(value() + amount); }
  void subtract(size_t amount) { set(value() - amount); }

 private:
  std::atomic<size_t> value_{0};
};

// Of a number that several threads raise.
inline void raise_to(std::atomic<size_t>& number, size_t least, std::memory_order order = std::memory_order_relaxed) {
  size_t seen = number.load(std::memory_order_relaxed);
  while (seen < least && !number.compare_exchange_weak(seen, least, order)) {}
}

}  // namespace rh
