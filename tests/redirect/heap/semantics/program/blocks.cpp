#include "blocks.h"

#include <string.h>

void leave_dirty(const Subject& subject, size_t size) {
  void* blocks[3];
  for (void*& block : blocks) {
    block = subject.alloc(size);
    if (block != nullptr) memset(block, 0xD7, size);
  }
  for (void* block : blocks) {
    if (block != nullptr) subject.free(block);
  }
}

void tell_block(Line& line, const Subject& subject, const void* block) {
  if (block == nullptr) {
    line.say(" null");
    return;
  }
  line.say(" block");
  if (reinterpret_cast<uintptr_t>(block) % kNaturalAlignment != 0) line.say(" misaligned");
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
  case 0:
    return "";
  case HEAP_ZERO_MEMORY:
    return " zero";
  case HEAP_NO_SERIALIZE:
    return " unserialized";
  case HEAP_GENERATE_EXCEPTIONS:
    return " raising";
  case HEAP_REALLOC_IN_PLACE_ONLY:
    return " in place";
  case HEAP_ZERO_MEMORY | HEAP_REALLOC_IN_PLACE_ONLY:
    return " zero in place";
  case HEAP_ZERO_MEMORY | HEAP_NO_SERIALIZE | HEAP_GENERATE_EXCEPTIONS:
    return " zero unserialized raising";
  default:
    return " other flags";
  }
}
