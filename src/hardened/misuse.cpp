#include "hardened/misuse.h"

#include "platform/report.h"

namespace rh::hardened {

constinit std::atomic<bool> g_goes_on{false};

namespace {

void tell(const Text& message, const void* block = nullptr, size_t size = 0) {
  Misuse misuse{address_of(block), size};
  if (!g_goes_on.load(std::memory_order_relaxed)) fatal(message, misuse);
  tell_misuse(message, misuse);
}

Text& put_block(Text& message, const void* block, size_t size) {
  message << "the block ";
  message.hex(address_of(block)) << " of ";
  return message.decimal(size) << " bytes";
}

}  // namespace

void tell_overflow(const void* block, size_t size, const char* seen) {
  Text message;
  put_block(message, block, size) << " was written to behind its end or before its start, seen at " << seen;
  tell(message, block, size);
}

void tell_written(const void* block, size_t size) {
  Text message;
  message << "write to a free block: ";
  put_block(message, block, size) << " was to be used again";
  tell(message, block, size);
}

void tell_twice(const void* block, size_t size) {
  Text message;
  message << "free of a block that is free already: ";
  message.hex(address_of(block)) << ", of ";
  tell(message.decimal(size) << " bytes", block, size);
}

void tell_maker(const void* block, size_t size, Maker maker, Maker freed_by) {
  static constexpr const char* kMadeBy[] = {"malloc", "new", "new[]"};
  static constexpr const char* kFreedBy[] = {"free", "delete", "delete[]"};
  Text message;
  put_block(message, block, size) << ", made by " << kMadeBy[static_cast<unsigned>(maker)] << ", was given to "
                                  << kFreedBy[static_cast<unsigned>(freed_by)];
  tell(message, block, size);
}

void tell_size(const void* block, size_t size, size_t freed_as) {
  Text message;
  put_block(message, block, size) << " was freed as one of ";
  tell(message.decimal(freed_as) << " bytes", block, size);
}

void tell_heap(const void* block, size_t size) {
  Text message;
  tell(put_block(message, block, size) << " was given to another heap than its own", block, size);
}

void tell_tag(const void* pointer, const void* block) {
  Text message;
  message << "free of a pointer that the block at ";
  message.hex(address_of(block)) << " no longer has, or never had: ";
  tell(message.hex(address_of(pointer)));
}

void tell_invalid(const void* pointer) {
  Text message;
  message << "free of invalid pointer ";
  tell(message.hex(address_of(pointer)) << ": not the start of a live block");
}

}  // namespace rh::hardened
