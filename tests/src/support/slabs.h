// What tests of slabs need.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "slabs/slab.h"

namespace rh::slab {

// Never dereferenced: to a slab its owner is just an address.
inline Heap* const kOwner = reinterpret_cast<Heap*>(uintptr_t{4096});

inline Span* make(size_t index) {
  Span* span = g_arena.allocate(Units{size_class::kProperties[index].units});
  static uint32_t number = 0;
  start(span, static_cast<SizeClass>(index), kOwner, ++number);
  return span;
}

inline size_t index_of(size_t size) { return size_class::computed(size); }

inline size_t length(const Block* list) {
  size_t count = 0;
  for (; list != nullptr; list = list->next) ++count;
  return count;
}

// The conservation law of arena/span.h, and lists as long as their counts.
inline void expect_conserved(const Span* slab) {
  unsigned capacity = properties(slab).capacity;
  unsigned booked = static_cast<uint16_t>(slab->outstanding.load() + slab->free_count + slab->others.returned());
  ASSERT_EQ(booked + hollow_blocks(slab) + (capacity - slab->carved.load()), capacity);
  ASSERT_EQ(length(slab->free), static_cast<uint16_t>(slab->free_count + unsettled(slab)));
  ASSERT_EQ(length(returned(slab)), slab->others.returned());
  ASSERT_EQ(outstanding(slab) + free_blocks(slab), capacity);
}

// By the owner, where frees are counted.
inline bool free_local(Span* slab, Block* block) {
  Block* bin = nullptr;
  if (slab->armed.load() == kUncounted) arm(slab, kNever);
  bool reached = free_local(slab, block, &bin);
  EXPECT_EQ(bin, nullptr);
  return reached;
}

// As the layer above does.
inline Block* hand_out(Block* block) {
  block->mark = 0;
  return block;
}

// Takes until the slab has no more blocks; returns them in that order.
inline std::vector<Block*> take_all(Span* slab) {
  std::vector<Block*> blocks;
  for (Taken taken; (taken = take(slab)).blocks != nullptr;) {
    for (Block* block = taken.blocks; block != nullptr; block = block->next) blocks.push_back(hand_out(block));
    expect_conserved(slab);
  }
  return blocks;
}

}  // namespace rh::slab
