// Memory for machine code within a jump's reach of an image. Writable until sealed, executable from then on, never
// both. Windows takes memory that becomes executable this way as valid targets under control-flow guard.
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

  // False when the process forbids new code.
  bool seal();

  void release();

 private:
  uint8_t* begin_ = nullptr;
  size_t used_ = 0;
  bool sealed_ = false;
};

}  // namespace rh::redirect
