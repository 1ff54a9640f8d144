// Included by the one file of each library that knows its C++ runtime: of all that calls this only that is compiled
// with exceptions.
#pragma once

#include "entry/bad_alloc.h"
#include "entry/replaced.h"

bool rh::call_new_handler_quietly(std::size_t size) noexcept {
  try {
    return call_new_handler(size);
  } catch (...) {
    return false;
  }
}

#if defined(__ELF__)

void* rh::operators::call_quietly(Make* theirs, std::size_t size) noexcept {
  try {
    return theirs(size);
  } catch (...) {
    return nullptr;
  }
}

void* rh::operators::call_quietly(MakeAligned* theirs, std::size_t size, std::align_val_t alignment) noexcept {
  try {
    return theirs(size, alignment);
  } catch (...) {
    return nullptr;
  }
}

#endif
