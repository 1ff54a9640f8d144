// How operator new reaches the C++ runtime, which differs from library to library.
#pragma once

#include <cstddef>

namespace rh {

[[noreturn]] void throw_bad_alloc();

// Asks the program's new-handler to make room for `size` bytes. False when there is none. What it throws passes on.
bool call_new_handler(std::size_t size);

// The same, but false also when it throws.
bool call_new_handler_quietly(std::size_t size) noexcept;

}  // namespace rh
