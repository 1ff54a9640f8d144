// Memory for machine code within a jump's reach of an image. Writable until sealed, executable from then on, never
// both. Control-flow guard takes none of it for a valid target: only jumps lead there, and calls of ours.
#pragma once

#include <cstddef>
#include <cstdint>

#include "range.h"

namespace rh::redirect {

class CodeMemory {
 public:
  // False when there is no room.
  bool open_near(Range image);

  // The next free piece, or NULL when there is none or the memory is sealed.
  uint8_t* take(size_t size);

  // The code has unwind data, from this memory too. To be called in the order of the addresses.
  void add_unwind(const uint8_t* code, size_t size, const uint8_t* data);

  // False when the process forbids new code.
  bool seal();

  void release();

 private:
  // As unwinders want it: distances from begin_.
  struct Unwind {
    uint32_t begin, end, data;
  };
  static constexpr size_t kMostUnwinds = 96;
  Unwind* unwinds() const;

  uint8_t* begin_ = nullptr;
  size_t used_ = 0;
  size_t unwind_count_ = 0;
  bool sealed_ = false;
};

}  // namespace rh::redirect
