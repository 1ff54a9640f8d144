// While somebody watches allocations, every one takes the slow path: the table that malloc's fast path reads then gives
// no size a class. While nobody does this costs nothing, not an instruction; and it can begin and end at any moment,
// for all threads at once. What watchers do is in watch.cpp.
#pragma once

#include "heap/types.h"

namespace rh::watch {

enum class Watcher : uint8_t {
  guards = 1,  // puts some blocks on guarded pages (heap/guards.h)
};

// A thread that is in an allocation meanwhile may still do it as before. May be called by any thread, at any time.
void begin(Watcher watcher);
void end(Watcher watcher);

inline bool is_on() { return platform::g_unset.medium_sizes.load() == 0; }

// While somebody watches: asks the watchers about an allocation of the calling thread's that is to come from a thread's
// heap. Gives a block that one of them has made for it, which reads as zero; null: it is to be allocated as always.
RH_COLD void* allocate(size_t alignment, size_t size);

}  // namespace rh::watch
