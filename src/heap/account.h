// What a first-class heap or a tag holds in slabs and large blocks, in bytes: now, at the peak, at most. It changes
// where spans come and go, so that malloc and free know nothing of it.
#pragma once

#include <atomic>
#include <cstddef>

#include "base/counter.h"

namespace rh {

class Account {
 public:
  size_t held() const { return held_.load(std::memory_order_relaxed); }
  size_t peak() const { return peak_.load(std::memory_order_relaxed); }
  size_t refused() const { return refused_.load(std::memory_order_relaxed); }

  // 0: none.
  size_t limit() const { return limit_.load(std::memory_order_relaxed); }
  void set_limit(size_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }

  bool admits(size_t bytes) const { return admits(held(), bytes); }

  // False, and nothing done, when the limit does not allow it.
  bool charge(size_t bytes) {
    size_t before = held();
    do {
      if (!admits(before, bytes)) return false;
    } while (!held_.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
    raise_to(peak_, before + bytes);
    return true;
  }

  // Whatever the limit is.
  void charge_anyway(size_t bytes) { raise_to(peak_, held_.fetch_add(bytes, std::memory_order_relaxed) + bytes); }

  void discharge(size_t bytes) { held_.fetch_sub(bytes, std::memory_order_relaxed); }

  void note_refused() { refused_.fetch_add(1, std::memory_order_relaxed); }

  // While nobody else uses it.
  void restart(size_t peak, size_t limit, size_t refused) {
    held_.store(0, std::memory_order_relaxed);
    peak_.store(peak, std::memory_order_relaxed);
    limit_.store(limit, std::memory_order_relaxed);
    refused_.store(refused, std::memory_order_relaxed);
  }

 private:
  bool admits(size_t before, size_t bytes) const {
    size_t most = limit();
    return most == 0 || (before <= most && bytes <= most - before);
  }

  std::atomic<size_t> held_{0}, peak_{0}, limit_{0}, refused_{0};
};

}  // namespace rh
