// All stacks that were seen, each once, and what was allocated by them.
#pragma once

#include "profile/array.h"

namespace rh::profile {

// Estimates. Objects are counted in 1/256.
struct Amount {
  static constexpr uint64_t kObject = 256;
  uint64_t objects;
  uint64_t bytes;

  void add(Amount other) { objects += other.objects, bytes += other.bytes; }
  void subtract(Amount other) { objects -= other.objects, bytes -= other.bytes; }
};

struct Stack {
  uint64_t hash;
  uint32_t first_frame;  // in the list of frames, the innermost first
  uint32_t depth;
  Amount allocated, live;
  Amount at_peak;  // as of the peak that `peak` counts: while another one is counted it is what is live
  uint32_t peak;
  uint32_t sampled;      // blocks
  uint64_t lifetime_ms;  // of all objects that were freed
};

// Zeroed, it is empty.
class Stacks {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // The number of a stack, which is there from then on; kNone when there is no memory for it.
  uint32_t find_or_add(const uintptr_t* frames, uint32_t depth);

  Array<Stack>& all() { return stacks_; }
  const Array<Stack>& all() const { return stacks_; }
  uintptr_t* frames() { return frames_.data(); }
  const uintptr_t* frames() const { return frames_.data(); }
  size_t frame_count() const { return frames_.count(); }

  // The same in memory of its own. False when there is none.
  bool copy_to(Stacks& copy) const;

  void clear();

 private:
  bool is(const Stack& stack, uint64_t hash, const uintptr_t* frames, uint32_t depth) const;
  bool make_room(uint32_t depth);
  uint32_t& place_of(uint64_t hash);

  Array<Stack> stacks_;
  Array<uintptr_t> frames_;
  Array<uint32_t> index_;  // numbers plus 1 by hash, at most half full; a power of two
};

}  // namespace rh::profile
