// What the process has mapped, as /proc/self/maps says: no lock of the loader's is taken, and nothing allocated.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rh::stacks {

// Text that somebody else keeps.
struct Piece {
  const char* text;
  size_t length;

  void skip(size_t characters) { text += characters, length -= characters; }
};

struct Mapping {
  uint64_t start;
  uint64_t end;
  uint64_t offset;
  uint64_t device;
  uint64_t inode;
  bool executable;
  Piece path;  // until the next one is read
};

class MemoryMap {
 public:
  MemoryMap(char* buffer, size_t bytes);
  ~MemoryMap();
  MemoryMap(const MemoryMap&) = delete;
  MemoryMap& operator=(const MemoryMap&) = delete;

  // False at the end, and when it cannot be read.
  bool next(Mapping& mapping);

 private:
  bool take_line(Piece& line);
  bool read_more();

  long file_;
  char* buffer_;
  size_t size_;
  size_t used_ = 0;
  size_t line_ = 0;
};

// A line of the kernel's is no longer: a path has at most 4096 bytes, and each of it may take four.
inline constexpr size_t kMapBuffer = 20 * 1024;

}  // namespace rh::stacks
