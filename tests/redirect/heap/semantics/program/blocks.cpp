#include "blocks.h"

#include <stdlib.h>
#include <string.h>

namespace {

size_t by_maker[2];

bool heaps_replaced() {
  static const char* const layers = getenv("REHEAP_LAYERS");
  return reheap_loaded() && (layers == nullptr || strcmp(layers, "both") == 0 || strcmp(layers, "heap") == 0);
}

}  // namespace

void tell_effects(Line& line, DWORD error, const Raised& raised) {
  if (raised.code != 0)
    line.say(" exception=%08lx%s", raised.code, raised.continuable ? " continuable" : "");
  else if (error != kUntouched)
    line.say(" error=%lu", error);
}

// Nothing is gathered: the effects of each call are told at once.
void forget_side_effects() {}
void tell_side_effects(Line&) {}

void expect_maker(Line& line, Maker maker, const void* block) {
  if (!heaps_replaced() || block == nullptr) return;
  bool by_reheap = reheap_owns(block);
  ++by_maker[by_reheap];
  if (by_reheap == (maker == Maker::reheap)) return;
  line.say(by_reheap ? " REHEAP'S" : " NOT REHEAP'S");
  count_failure();
}

void tell_makers() {
  if (heaps_replaced()) Line("makers").say(" %Iu blocks by reheap, %Iu by the system", by_maker[true], by_maker[false]);
}

void leave_dirty(const Subject& subject, size_t size) {
  void* blocks[3];
  for (void*& block : blocks) {
    block = subject.alloc(size);
    if (block != nullptr) memset(block, 0xD7, size);
  }
  for (void* block : blocks)
    if (block != nullptr) subject.free(block);
}

void tell_block(Line& line, const Subject& subject, const void* block) {
  if (block == nullptr) {
    line.say(" null");
    return;
  }
  line.say(" block");
  if (!is_aligned(block)) line.say(" misaligned");
  size_t size = observed(line, [&] { return subject.door.size(subject.heap, 0, block); });
  line.say(" size=%Iu", size);
  if (!observed(line, [&] { return subject.door.validate(subject.heap, 0, block); })) line.say(" invalid");
  expect_maker(line, subject.maker, block);
}

void tell_freed(Line& line, const Subject& subject, void* block) {
  BOOL freed = observed(line, [&] { return subject.free(block); });
  line.say(freed == TRUE ? " freed" : " NOT FREED(%d)", freed);
}

const char* name_of_flags(DWORD flags) {
  switch (flags) {
  case 0: return "";
  case HEAP_ZERO_MEMORY: return " zero";
  case HEAP_NO_SERIALIZE: return " unserialized";
  case HEAP_GENERATE_EXCEPTIONS: return " raising";
  case HEAP_REALLOC_IN_PLACE_ONLY: return " in place";
  case HEAP_ZERO_MEMORY | HEAP_REALLOC_IN_PLACE_ONLY: return " zero in place";
  case HEAP_ZERO_MEMORY | HEAP_NO_SERIALIZE | HEAP_GENERATE_EXCEPTIONS: return " zero unserialized raising";
  default: return " other flags";
  }
}
