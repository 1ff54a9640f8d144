// Included by the one file of each library that knows its C++ runtime: of all that calls this only that is compiled
// with exceptions.
#pragma once

#include "entry/bad_alloc.h"

bool rh::call_new_handler_quietly(std::size_t size) noexcept {
  try {
    return call_new_handler(size);
  } catch (...) {
    return false;
  }
}
