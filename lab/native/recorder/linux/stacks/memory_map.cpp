#include "linux/stacks/memory_map.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

namespace recorder {
namespace {

// Takes a number off the front, and the character behind it.
uint64_t take_number(std::string_view& text, unsigned base) {
  uint64_t value = 0;
  size_t i = 0;
  for (; i != text.size(); ++i) {
    const char c = text[i];
    if (c >= '0' && c <= '9')
      value = value * base + static_cast<uint64_t>(c - '0');
    else if (base == 16 && c >= 'a' && c <= 'f')
      value = value * base + static_cast<uint64_t>(c - 'a' + 10);
    else
      break;
  }
  text.remove_prefix(i == text.size() ? i : i + 1);
  return value;
}

}  // namespace

MemoryMap::MemoryMap(char* buffer, size_t bytes)
    : file_(open("/proc/self/maps", O_RDONLY | O_CLOEXEC)), buffer_(buffer), size_(bytes) {}

MemoryMap::~MemoryMap() {
  if (file_ >= 0) close(file_);
}

bool MemoryMap::take_line(std::string_view& line) {
  for (;;) {
    const char* from = buffer_ + line_;
    if (const auto* end = static_cast<const char*>(std::memchr(from, '\n', used_ - line_))) {
      line = {from, static_cast<size_t>(end - from)};
      line_ += line.size() + 1;
      return true;
    }
    std::memmove(buffer_, from, used_ -= line_);
    line_ = 0;
    if (file_ < 0 || used_ == size_) return false;
    const ssize_t got = read(file_, buffer_ + used_, size_ - used_);
    if (got <= 0) return false;
    used_ += static_cast<size_t>(got);
  }
}

// 7f0123456000-7f0123478000 r-xp 00026000 fe:01 1234567     /usr/lib/libc.so.6
bool MemoryMap::next(Mapping& mapping) {
  std::string_view line;
  if (!take_line(line)) return false;
  mapping.start = take_number(line, 16);
  mapping.end = take_number(line, 16);
  mapping.executable = line.size() > 5 && line[2] == 'x';
  line.remove_prefix(line.size() < 5 ? line.size() : 5);
  mapping.offset = take_number(line, 16);
  mapping.device = take_number(line, 16) << 32;
  mapping.device |= take_number(line, 16);
  mapping.inode = take_number(line, 10);
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  mapping.path = line;
  return true;
}

}  // namespace recorder
