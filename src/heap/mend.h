// After a thread that was terminated in the middle (TerminateThread): locks that it held are taken from it, and what
// they guard may be half-changed.
//
// Nothing of that is used again, and the rest goes on beside it. A heap gives up its slabs: their blocks stay valid,
// and are kept when they are freed. The arena gives up what was free. The registry is put in order.
#pragma once

namespace rh::mend {

// Has it done from now on.
void watch();

}  // namespace rh::mend
