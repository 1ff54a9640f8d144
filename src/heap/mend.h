// After a thread that was terminated in the middle (TerminateThread): locks that it held are taken from it, and what they
// guard may be half-changed.
//
// Nothing of that is used again, and the rest goes on beside it. A heap gives up its slabs: their blocks stay valid,
// and are kept when they are freed. The arena gives up what was free. The registry is put in order.
#pragma once

#include "heap/heap.h"

namespace rh::mend {

// Has it done from now on.
void watch();

// The caller became the owner of a heap whose thread may have been terminated between any two steps.
void settle(Heap* heap);

}  // namespace rh::mend
