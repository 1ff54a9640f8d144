#include "profile/live.h"

#include "base/bits.h"

namespace rh::profile {

size_t LiveBlocks::home(uintptr_t address) const { return static_cast<size_t>(mix(address)) & (places_.count() - 1); }

// Where it is, or where it would be.
LiveBlock& LiveBlocks::place_of(uintptr_t address) {
  size_t at = home(address);
  while (places_[at].address != 0 && places_[at].address != address) at = (at + 1) & (places_.count() - 1);
  return places_[at];
}

bool LiveBlocks::make_room() {
  constexpr size_t kFirst = 1024;
  if (2 * used_ < places_.count()) return true;
  Array<LiveBlock> before;
  if (!before.make_zeros(places_.count() == 0 ? kFirst : 2 * places_.count())) return false;
  places_.swap(before);
  for (size_t at = 0; at != before.count(); ++at)
    if (before[at].address != 0) place_of(before[at].address) = before[at];
  before.clear();
  return true;
}

LiveBlock* LiveBlocks::add(uintptr_t address) {
  if (!make_room()) return nullptr;
  ++used_;
  LiveBlock& place = place_of(address);
  place = {};
  place.address = address;
  return &place;
}

LiveBlock* LiveBlocks::find(uintptr_t address) {
  if (used_ == 0) return nullptr;
  LiveBlock& place = place_of(address);
  return place.address == address ? &place : nullptr;
}

// What follows moves up, as long as it does not stand where it belongs.
void LiveBlocks::remove(LiveBlock* block) {
  const size_t mask = places_.count() - 1;
  auto hole = static_cast<size_t>(block - places_.data());
  for (size_t at = (hole + 1) & mask; places_[at].address != 0; at = (at + 1) & mask) {
    const size_t way = (at - home(places_[at].address)) & mask;
    if (way < ((at - hole) & mask)) continue;
    places_[hole] = places_[at];
    hole = at;
  }
  places_[hole] = {};
  --used_;
}

void LiveBlocks::clear() {
  places_.clear();
  used_ = 0;
}

}  // namespace rh::profile
