// Messages to the user: one line on stderr, beginning with "reheap: ".
#pragma once

#include "base/text.h"

namespace rh {

// Writes "reheap: <message>\n" in one piece.
void report(const Text& message);

// Reports and aborts.
[[noreturn]] void fatal(const Text& message);

}  // namespace rh
