// Puts reheap in the place of the system's heap functions, whole or not at all, and remembers what became of it.
#pragma once

#include "base/text.h"

namespace rh::heaps {

// Under the loader's lock, once. True when they were replaced.
bool replace();

bool is_replaced();

// Whether it was tried; then its line: what was replaced, or why it was left.
bool was_tried();
bool was_left();  // though it was tried
void describe(Text& text);

}  // namespace rh::heaps
