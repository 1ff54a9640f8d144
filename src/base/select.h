// A choice between two pointers that no processor can foretell: made without a branch, since a wrong guess costs more
// than all the rest of a free.
#pragma once

#include <cstdint>

#include "base/compiler.h"

namespace rh {

template <typename T> RH_INLINE T* select(uint16_t word, T* if_zero, T* otherwise) {
#if (defined(__x86_64__) && !defined(__arm64ec__)) || defined(__i386__)
  // Of the plain expression compilers make a branch.
  asm("cmpw $0, %2\n\tcmovz %1, %0" : "+r"(otherwise) : "r"(if_zero), "rm"(word) : "cc");
  return otherwise;
#else
  return word == 0 ? if_zero : otherwise;
#endif
}

}  // namespace rh
