// Where a Text goes.
#pragma once

#include "platform/platform.h"

namespace rh {

// To stderr.
inline void write_to_error(const char* text, size_t length, void*) { platform::write_error(text, length); }

// `file`: a FileWriter.
inline void write_to_file(const char* text, size_t length, void* file) {
  static_cast<platform::FileWriter*>(file)->write(text, length);
}

}  // namespace rh
