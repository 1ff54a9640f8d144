// What first-class heaps hold, in their own account and in that of the tag that they are of. Threads' own heaps have
// none.
#pragma once

#include "heap/types.h"

namespace rh::accounts {

RH_COLD bool charge_shared(Heap* heap, size_t bytes);
RH_COLD void discharge_shared(Heap* heap, size_t bytes);

// The heap is about to take so much; or just has. False, and nothing done, when a limit does not allow it.
inline bool charge(Heap* heap, Units units) { return RH_LIKELY(!heap->shared) || charge_shared(heap, units.bytes()); }

// It has given so much back, or is about to.
inline void discharge(Heap* heap, Units units) {
  if (RH_UNLIKELY(heap->shared)) discharge_shared(heap, units.bytes());
}

// One of its blocks has moved to so much from so much, whatever a limit says.
void exchange(Heap* heap, Units from, Units to);

// Whether a limit allows so much more, as things stand.
bool admits(const Heap* heap, Units units);

// Whether there is a limit; and that a request was refused by one.
bool are_limited(const Heap* heap);
void note_refused(Heap* heap);

// All that it held is nobody's now.
void forget_held(Heap* heap);

}  // namespace rh::accounts
