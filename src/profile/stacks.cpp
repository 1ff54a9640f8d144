#include "profile/stacks.h"

#include "base/bits.h"

namespace rh::profile {

namespace {

uint64_t hash_of(const uintptr_t* frames, uint32_t depth) {
  uint64_t hash = depth;
  for (uint32_t i = 0; i != depth; ++i) hash = mix(hash ^ frames[i]);
  return hash;
}

template <typename T> bool copy_array(const Array<T>& from, Array<T>& to) {
  if (!to.make_zeros(from.count())) return false;
  if (from.count() != 0) __builtin_memcpy(static_cast<void*>(to.data()), from.data(), from.count() * sizeof(T));
  return true;
}

}  // namespace

bool Stacks::is(const Stack& stack, uint64_t hash, const uintptr_t* frames, uint32_t depth) const {
  if (stack.hash != hash || stack.depth != depth) return false;
  for (uint32_t i = 0; i != depth; ++i)
    if (frames_[stack.first_frame + i] != frames[i]) return false;
  return true;
}

// Where a stack of that hash that is not there would stand.
uint32_t& Stacks::place_of(uint64_t hash) {
  const size_t mask = index_.count() - 1;
  size_t at = static_cast<size_t>(hash) & mask;
  while (index_[at] != 0) at = (at + 1) & mask;
  return index_[at];
}

bool Stacks::make_room(uint32_t depth) {
  constexpr size_t kFirst = 4096, kMost = size_t{1} << 30;
  if (frames_.count() >= kMost || !frames_.make_room(depth) || !stacks_.make_room(1)) return false;
  if (stacks_.count() * 2 < index_.count()) return true;
  Array<uint32_t> longer;
  if (!longer.make_zeros(index_.count() == 0 ? kFirst : 2 * index_.count())) return false;
  index_.swap(longer);
  longer.clear();
  for (uint32_t number = 0; number != stacks_.count(); ++number) place_of(stacks_[number].hash) = number + 1;
  return true;
}

uint32_t Stacks::find_or_add(const uintptr_t* frames, uint32_t depth) {
  const uint64_t hash = hash_of(frames, depth);
  if (index_.count() != 0) {
    const size_t mask = index_.count() - 1;
    for (size_t at = static_cast<size_t>(hash) & mask; index_[at] != 0; at = (at + 1) & mask)
      if (is(stacks_[index_[at] - 1], hash, frames, depth)) return index_[at] - 1;
  }
  if (!make_room(depth)) return kNone;
  Stack& stack = stacks_.add();
  stack = {};
  stack.hash = hash;
  stack.first_frame = static_cast<uint32_t>(frames_.count());
  stack.depth = depth;
  for (uint32_t i = 0; i != depth; ++i) frames_.add() = frames[i];
  const auto number = static_cast<uint32_t>(stacks_.count() - 1);
  place_of(hash) = number + 1;
  return number;
}

bool Stacks::copy_to(Stacks& copy) const {
  return copy_array(stacks_, copy.stacks_) && copy_array(frames_, copy.frames_);
}

void Stacks::clear() {
  stacks_.clear();
  frames_.clear();
  index_.clear();
}

}  // namespace rh::profile
