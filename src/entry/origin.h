// Which library or program a function belongs to.
#pragma once

#include <cstddef>

namespace rh {

// As the system names it, in UTF-8; empty when it is not known.
struct Path {
  static constexpr size_t kMost = 1024;
  char text[kMost] = {};
};

namespace origin {

// The library or program that `address` lies in.
Path library_of(const void* address);

// The one whose malloc programs in this process reach: not ours when another comes first.
Path malloc_server();

}  // namespace origin
}  // namespace rh
