// All stacks of the process, as a tree: each is another one, its parent, and one more frame. A stack is found without a
// lock, and added under the one of what the tree is part of, after the trace has it.
#pragma once

#include <atomic>
#include <cstdint>

#include "platform/linux/stacks/modules.h"
#include "platform/linux/stacks/walk.h"
#include "stream/stream.h"

namespace recorder {

using rh::stacks::Frame;
using rh::stacks::Modules;

// Zeroed, it holds the empty stack.
class Tree {
 public:
  // The stack of these frames, the innermost first. 0: it is not there.
  uint32_t find(const Frame* frames, uint32_t count) const;
  // Its number once it is there and in the trace; the empty stack's when there is no room for it.
  uint32_t add(const Frame* frames, uint32_t count, const Modules& modules, Stream& stream);

 private:
  static constexpr uint32_t kMost = 1 << 21;
  static constexpr uint32_t kFirst = trace::kEmptyStack + 1;

  struct Node {
    Frame frame;
    uint32_t parent;
  };
  struct Index {
    uint32_t mask;
    std::atomic<uint32_t> numbers[];  // 0: none
  };

  uint32_t child(uint32_t parent, Frame frame) const;
  bool make_room();
  void put(Index& index, uint32_t number);

  std::atomic<Index*> index_;
  uint32_t count_;
  Node nodes_[kMost];
};

}  // namespace recorder
