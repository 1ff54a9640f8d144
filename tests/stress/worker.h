// Threads that make, resize, free and hand over blocks through slots that all share, and the slots.
#pragma once

#include <atomic>
#include <span>
#include <thread>
#include <utility>

#include "blocks.h"
#include "support/pattern.h"

namespace heap_stress {

using contract::mix;
using contract::Random;

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;
constexpr std::size_t kSlots = 1024;
constexpr std::size_t kOwn = 200;  // blocks a worker keeps
constexpr std::size_t kLarge = 128 * KiB;
constexpr std::size_t kLargeAtOnce = 32;  // in the whole process

struct Slot {
  std::atomic_flag taken;
  Block block;
};

struct Shared {
  std::span<Heap* const> heaps;
  std::size_t (*pick_size)(Random& random);
  Slot slots[kSlots] = {};
  std::atomic<bool> stop{false};
  std::atomic<std::size_t> large{0};
  std::atomic<unsigned long> operations{0};
  std::atomic<unsigned long> lives{0};

  Block exchange(std::size_t index, Block block) {
    if (block.handle && breaks(Break::contents)) flip_a_byte(block);
    while (slots[index].taken.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
    std::swap(block, slots[index].block);
    slots[index].taken.clear(std::memory_order_release);
    return block;
  }

  void drain() {
    for (Slot& slot : slots)
      if (slot.block.handle) drop(slot.block);
  }
};

class Worker {
 public:
  Worker(Shared& shared, std::uint64_t seed) : shared_(shared), random_(seed) {}

  // One life.
  void live() {
    ++shared_.lives;
    const std::size_t operations = random_.one_in(2) ? 100 + random_.below(1000) : 5000;
    for (std::size_t done = 0; done < operations && !shared_.stop; ++done) step();
    shared_.operations += operations;
    leave();
  }

 protected:
  // Something else instead of a step, or false.
  virtual bool digress(Random&) { return false; }

 private:
  void step() {
    if (digress(random_)) return;
    Block& block = own_[random_.below(kOwn)];
    if (!block.handle) return begin(block);
    switch (random_.below(8)) {
    case 0:
    case 1: return change(block);
    case 2:
    case 3: block = shared_.exchange(random_.below(kSlots), block); return;
    default: return end(block);
    }
  }

  std::size_t pick_size() {
    const std::size_t size = shared_.pick_size(random_);
    return size >= kLarge && shared_.large >= kLargeAtOnce ? 1 + random_.below(KiB) : size;
  }

  void begin(Block& block) {
    make(block, *shared_.heaps[random_.below(shared_.heaps.size())], pick_size(), random_.next(), random_.one_in(3));
    note_large(block, 1);
  }

  void change(Block& block) {
    const std::size_t wanted = random_.one_in(2) ? pick_size() : 1 + block.size / 2 + random_.below(block.size + 1);
    note_large(block, -1);
    random_.one_in(4) ? try_in_place(block, wanted) : resize(block, wanted, random_.one_in(2));
    note_large(block, 1);
  }

  void end(Block& block) {
    note_large(block, -1);
    drop(block);
  }

  // Half of what it holds goes to the others, the rest is freed.
  void leave() {
    for (Block& block : own_) {
      if (block.handle && random_.one_in(2)) block = shared_.exchange(random_.below(kSlots), block);
      if (block.handle) end(block);
    }
  }

  void note_large(const Block& block, int change) {
    if (block.size >= kLarge) shared_.large += static_cast<std::size_t>(change);
  }

  Shared& shared_;
  Random random_;
  Block own_[kOwn] = {};
};

}  // namespace heap_stress
