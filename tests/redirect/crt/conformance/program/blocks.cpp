#include "blocks.h"

#include "reheap.h"

namespace {

void tell_size(Line& line, const Twins& twins, void* block) { line.say(" msize=%Iu", exact_size(twins, block)); }

void tell_place(Line& line, void* block) {
  bool aligned = reinterpret_cast<uintptr_t>(block) % kNaturalAlignment == 0;
  line.say(aligned ? " block" : " misaligned");
}

}  // namespace

void leave_dirty(const Twins& twins, size_t size) {
  constexpr int kBlocks = 8;
  void* blocks[kBlocks];
  for (void*& block : blocks) {
    block = twins.malloc(size);
    if (block != nullptr) fill(block, size, 0);
  }
  for (void* block : blocks) twins.free(block);
}

size_t exact_size(const Twins& twins, void* block) {
  return twins.msize != nullptr ? twins.msize(block) : crt.plain.msize(block);
}

void tell_block(Line& line, const Twins& twins, void* block, size_t size) {
  if (block == nullptr) {
    line.say(" null");
    return;
  }
  tell_place(line, block);
  tell_size(line, twins, block);
  fill(block, size, 1);
  expect_served(line, block);
}

void tell_resized(Line& line, const Twins& twins, void* block, size_t size, size_t kept, unsigned seed) {
  if (block == nullptr) {
    line.say(" null");
    return;
  }
  tell_place(line, block);
  tell_size(line, twins, block);
  line.say(holds(block, kept, seed) ? " kept" : " LOST");
  fill(block, size, seed);
  expect_served(line, block);
}
