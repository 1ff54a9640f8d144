#include "blocks.h"

namespace {

void tell_size(Line& line, const Twins& twins, void* block) { line.say(" msize=%Iu", exact_size(twins, block)); }

void tell_place(Line& line, void* block) { line.say(is_aligned(block) ? " block" : " misaligned"); }

}  // namespace

void expect_served(Line& line, const void* block) {
  if (!reheap_loaded() || reheap_owns(block)) return;
  line.say(" NOT REHEAP'S");
  count_failure();
}

void tell_served(const char* name, const void* block) {
  if (!reheap_loaded() || block == nullptr) return;
  Line("served").say(" %s %s", name, reheap_owns(block) ? "by reheap" : "by the CRT");
}

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
