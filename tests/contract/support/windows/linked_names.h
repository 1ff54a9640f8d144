// The rh_ names that are linked into the program.
#pragma once

#include <span>

namespace contract {

struct LinkedName {
  const char* name;
  void* address;
};

std::span<const LinkedName> linked_names();

}  // namespace contract
