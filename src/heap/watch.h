// While somebody watches allocations, every one takes the slow path: the table that malloc's fast path reads then gives
// no size a class. While nobody does this costs nothing, not an instruction; and it can begin and end at any moment,
// for all threads at once.
#pragma once

#include "heap/types.h"

namespace rh::watch {

enum class Watcher : uint8_t {
  guards = 1,   // puts some blocks on guarded pages (heap/guards.h)
  profile = 2,  // has some blocks come from a heap of their own (heap/sampled.h)
};

// A thread that is in an allocation meanwhile may still do it as before. May be called by any thread, at any time.
void begin(Watcher watcher);
void end(Watcher watcher);

inline bool is_on() { return platform::g_unset.medium_sizes.load() == 0; }

}  // namespace rh::watch
