#pragma once

#include <cstddef>

namespace rh::altered {

// To be told before each system call that may change what the heap's pages are: its number and its arguments.
void note_call(long number, const void* pages, size_t size, long third = 0, long fourth = 0, long = 0, long = 0);

}  // namespace rh::altered
