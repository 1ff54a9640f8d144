// Where the hold of a lock begins and ends. The coherence simulation (bench/coherence) counts the cache lines that move
// within; everywhere else this does nothing.
#pragma once

#include "base/compiler.h"
#include "platform/lock_order.h"

namespace rh {

#if defined(RH_COHERENCE)
// Before the lock's own line is asked for: who waits for the lock waits for that too.
void hold_begins(LockRank rank);
void hold_refused(LockRank rank);
void hold_ends(LockRank rank);
#else
RH_INLINE void hold_begins(LockRank) {}
RH_INLINE void hold_refused(LockRank) {}
RH_INLINE void hold_ends(LockRank) {}
#endif

}  // namespace rh
