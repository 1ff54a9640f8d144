#include "linux/stacks/tree.h"

#include "stream/system.h"

namespace recorder {
namespace {

uint32_t home(uint32_t parent, Frame frame) {
  const uint64_t mixed = (frame.bits() ^ uint64_t{parent} << 40 ^ parent) * 0x9e3779b97f4a7c15;
  return static_cast<uint32_t>(mixed >> 32);
}

}  // namespace

uint32_t Tree::child(uint32_t parent, Frame frame) const {
  const Index* index = index_.load(std::memory_order_acquire);
  if (!index) return 0;
  for (uint32_t i = home(parent, frame) & index->mask;; i = (i + 1) & index->mask) {
    const uint32_t number = index->numbers[i].load(std::memory_order_acquire);
    if (number == 0) return 0;
    const Node& node = nodes_[number - kFirst];
    if (node.parent == parent && node.frame == frame) return number;
  }
}

uint32_t Tree::find(const Frame* frames, uint32_t count) const {
  uint32_t stack = trace::kEmptyStack;
  while (count != 0 && stack != 0) stack = child(stack, frames[--count]);
  return stack;
}

void Tree::put(Index& index, uint32_t number) {
  const Node& node = nodes_[number - kFirst];
  uint32_t i = home(node.parent, node.frame) & index.mask;
  while (index.numbers[i].load(std::memory_order_relaxed) != 0) i = (i + 1) & index.mask;
  index.numbers[i].store(number, std::memory_order_release);
}

// The index is never more than half full. Who still reads the old one finds less in it, and asks again under the lock;
// it is never given back.
bool Tree::make_room() {
  constexpr uint32_t kFirstSlots = 1024;
  const Index* old = index_.load(std::memory_order_relaxed);
  if (count_ == kMost) return false;
  if (old && count_ * 2 < old->mask) return true;
  const uint32_t slots = old ? (old->mask + 1) * 2 : kFirstSlots;
  auto* fresh = static_cast<Index*>(system::memory_of_this_process(sizeof(Index) + slots * sizeof(uint32_t)));
  if (!fresh) return false;
  fresh->mask = slots - 1;
  for (uint32_t i = 0; i != count_; ++i) put(*fresh, kFirst + i);
  index_.store(fresh, std::memory_order_release);
  return true;
}

uint32_t Tree::add(const Frame* frames, uint32_t count, const Modules& modules, Stream& stream) {
  uint32_t stack = trace::kEmptyStack;
  while (count != 0) {
    const Frame frame = frames[--count];
    if (const uint32_t known = child(stack, frame)) {
      stack = known;
      continue;
    }
    if (!make_room()) return trace::kEmptyStack;
    const uint32_t number = kFirst + count_;
    const trace::Event note = {.kind = trace::Kind::kFrame,
                               .address = frame.address() - modules[frame.module()].start,
                               .stack = number,
                               .parent = stack,
                               .module = frame.module()};
    if (!write_note(stream, note)) return trace::kEmptyStack;
    nodes_[count_++] = {frame, stack};
    put(*index_.load(std::memory_order_relaxed), number);
    stack = number;
  }
  return stack;
}

}  // namespace recorder
