#include "platform/linux/stacks/memory_map.h"

#include <errno.h>
#include <fcntl.h>

#include "platform/linux/syscall.h"

namespace rh::stacks {
namespace {

using platform::is_error;
using platform::system_call;

// Takes a number off the front, and the character behind it.
template <unsigned kBase> uint64_t take_number(Piece& from) {
  uint64_t value = 0;
  size_t i = 0;
  for (; i != from.length; ++i) {
    const auto c = static_cast<unsigned char>(from.text[i]);
    const unsigned digit = c <= '9' ? c - unsigned{'0'} : c - unsigned{'a'} + 10;
    if (digit >= kBase) break;
    value = value * kBase + digit;
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
  mapping.start = take_number<16>(line);
  mapping.end = take_number<16>(line);
  mapping.executable = line.length > 5 && line.text[2] == 'x';
  line.skip(line.length < 5 ? line.length : 5);
  mapping.offset = take_number<16>(line);
  mapping.device = take_number<16>(line) << 32;
  mapping.device |= take_number<16>(line);
  mapping.inode = take_number<10>(line);
  while (line.length != 0 && *line.text == ' ') line.skip(1);
  mapping.path = line;
  return true;
}

}  // namespace rh::stacks
