#include "platform/linux/stacks/memory_map.h"

#include <errno.h>
#include <fcntl.h>

#include "platform/linux/syscall.h"

namespace rh::stacks {
namespace {

using platform::is_error;
using platform::system_call;

// Takes a number off the front, and the character behind it.
uint64_t take_number(Piece& from, unsigned base) {
  uint64_t value = 0;
  size_t i = 0;
  for (; i != from.length; ++i) {
    const char c = from.text[i];
    if (c >= '0' && c <= '9')
      value = value * base + static_cast<uint64_t>(c - '0');
    else if (base == 16 && c >= 'a' && c <= 'f')
      value = value * base + static_cast<uint64_t>(c - 'a' + 10);
    else
      break;
  }
  from.skip(i == from.length ? i : i + 1);
  return value;
}

}  // namespace

MemoryMap::MemoryMap(char* buffer, size_t bytes)
    : file_(system_call(SYS_openat, AT_FDCWD, reinterpret_cast<long>("/proc/self/maps"), O_RDONLY | O_CLOEXEC)),
      buffer_(buffer), size_(bytes) {}

MemoryMap::~MemoryMap() {
  if (!is_error(file_)) system_call(SYS_close, file_);
}

bool MemoryMap::read_more() {
  if (is_error(file_) || used_ == size_) return false;
  long got;
  do {
    got = system_call(SYS_read, file_, reinterpret_cast<long>(buffer_ + used_), static_cast<long>(size_ - used_));
  } while (got == -EINTR);
  if (is_error(got) || got == 0) return false;
  used_ += static_cast<size_t>(got);
  return true;
}

bool MemoryMap::take_line(Piece& line) {
  do {
    const char* from = buffer_ + line_;
    if (const void* end = __builtin_memchr(from, '\n', used_ - line_)) {
      line = {from, static_cast<size_t>(static_cast<const char*>(end) - from)};
      line_ += line.length + 1;
      return true;
    }
    __builtin_memmove(buffer_, from, used_ -= line_);
    line_ = 0;
  } while (read_more());
  return false;
}

// 7f0123456000-7f0123478000 r-xp 00026000 fe:01 1234567     /usr/lib/libc.so.6
bool MemoryMap::next(Mapping& mapping) {
  Piece line;
  if (!take_line(line)) return false;
  mapping.start = take_number(line, 16);
  mapping.end = take_number(line, 16);
  mapping.executable = line.length > 5 && line.text[2] == 'x';
  line.skip(line.length < 5 ? line.length : 5);
  mapping.offset = take_number(line, 16);
  mapping.device = take_number(line, 16) << 32;
  mapping.device |= take_number(line, 16);
  mapping.inode = take_number(line, 10);
  while (line.length != 0 && *line.text == ' ') line.skip(1);
  mapping.path = line;
  return true;
}

}  // namespace rh::stacks
