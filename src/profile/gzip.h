// gzip, as far as a writer must know it: in blocks that are not compressed (RFC 1951, 1952).
#pragma once

#include "platform/platform.h"

namespace rh::profile {

// Large: not for a stack. Zeroed, then begun.
class Gzip {
 public:
  void begin(platform::FileWriter& file);
  void write(const void* bytes, size_t length);
  void end();

 private:
  static constexpr size_t kMostInBlock = 60 * 1024;

  void write_block(bool is_last);
  void write_raw(const void* bytes, size_t length);

  platform::FileWriter* file_;
  uint32_t crc_;
  uint32_t length_;  // modulo 2^32, as the format has it
  size_t used_;
  unsigned char block_[kMostInBlock];
};

}  // namespace rh::profile
