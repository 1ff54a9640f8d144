// The sampled blocks that are live, by address.
#pragma once

#include <atomic>

#include "base/bits.h"
#include "profile/stacks.h"

namespace rh::profile {

struct LiveBlock {
  uintptr_t address;  // 0: none
  uint32_t stack;
  uint64_t made_ms;
  uint64_t size;
  Amount stands_for;
};

// Which addresses may be among them, for who asks without the lock: each of so many places counts the addresses that
// lead to it. Zeroed, it is empty.
class Sieve {
 public:
  bool may_have(uintptr_t address) const { return place_of(address).load(std::memory_order_relaxed) != 0; }

  // These change it, by one thread at a time.
  void add(uintptr_t address) { change(place_of(address), 1); }
  void remove(uintptr_t address) { change(place_of(address), -1); }
  void clear() {
    for (Place& place : places_) place.store(0, std::memory_order_relaxed);
  }

 private:
  using Place = std::atomic<uint16_t>;
  static constexpr size_t kPlaces = size_t{1} << 14;
  static constexpr uint16_t kMany = UINT16_MAX;  // and stays so

  static void change(Place& place, int by) {
    const uint16_t now = place.load(std::memory_order_relaxed);
    if (now != kMany) place.store(static_cast<uint16_t>(now + by), std::memory_order_relaxed);
  }
  const Place& place_of(uintptr_t address) const { return places_[mix(address) % kPlaces]; }
  Place& place_of(uintptr_t address) { return places_[mix(address) % kPlaces]; }

  Place places_[kPlaces];
};

// Zeroed, it is empty.
class LiveBlocks {
 public:
  // To be filled in by the caller; null when there is no memory for it. It is not there yet.
  LiveBlock* add(uintptr_t address);

  LiveBlock* find(uintptr_t address);
  void remove(LiveBlock* block);

  template <typename Visit> void each(Visit visit) const {
    for (size_t at = 0; at != places_.count(); ++at)
      if (places_[at].address != 0) visit(places_[at]);
  }

  size_t count() const { return used_; }
  void clear();

 private:
  bool make_room();
  LiveBlock& place_of(uintptr_t address);
  size_t home(uintptr_t address) const;

  Array<LiveBlock> places_;  // at most half full; a power of two
  size_t used_ = 0;
};

}  // namespace rh::profile
