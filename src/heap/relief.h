// What is done when more is held than the soft limit (heap/limit.h): what is free goes back, and the program is told.
#pragma once

#include <atomic>
#include <cstddef>

#include "arena/arena.h"

namespace rh::relief {

// Told by the thread that allocates, or sets a limit, when more than the soft one is held even after all that is free
// went back; one thread at a time, holding no lock. Gives the one before.
using Listener = void (*)(size_t held, size_t soft);
Listener listen(Listener listener);

// Whether answer() has something to do: to be asked by those who allocate, when they hold no lock.
inline bool is_called() { return RH_UNLIKELY(g_limit_calls.load(std::memory_order_relaxed)); }
void answer();

void after_fork_in_child();

}  // namespace rh::relief
