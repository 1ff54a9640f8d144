#include "hardened/misuse.h"

#include "platform/report.h"

namespace rh::hardened {

namespace {

Text& put_block(Text& message, const void* block, size_t size) {
  message << "the block ";
  message.hex(address_of(block)) << " of ";
  return message.decimal(size) << " bytes";
}

}  // namespace

void fail_overflow(const void* block, size_t size, const char* seen) {
  Text message;
  put_block(message, block, size) << " was written to behind its end or before its start, seen at " << seen;
  fatal(message);
}

void fail_written(const void* block, size_t size) {
  Text message;
  message << "write to a free block: ";
  put_block(message, block, size) << " was to be used again";
  fatal(message);
}

void fail_twice(const void* block, size_t size) {
  Text message;
  message << "free of a block that is free already: ";
  message.hex(address_of(block)) << ", of ";
  fatal(message.decimal(size) << " bytes");
}

void fail_maker(const void* block, size_t size, Maker maker, Maker freed_by) {
  static constexpr const char* kMadeBy[] = {"malloc", "new", "new[]"};
  static constexpr const char* kFreedBy[] = {"free", "delete", "delete[]"};
  Text message;
  put_block(message, block, size) << ", made by " << kMadeBy[static_cast<unsigned>(maker)] << ", was given to "
                                  << kFreedBy[static_cast<unsigned>(freed_by)];
  fatal(message);
}

void fail_size(const void* block, size_t size, size_t freed_as) {
  Text message;
  put_block(message, block, size) << " was freed as one of ";
  fatal(message.decimal(freed_as) << " bytes");
}

}  // namespace rh::hardened
