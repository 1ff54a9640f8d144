// What the library does without in a process that may read, write and end, and is killed for any other call: seccomp's
// strict mode.
#pragma once

namespace rh::platform {

// From now on no memory goes back, as if all of it were locked, nor does any wish for huge pages end.
void give_nothing_back();

}  // namespace rh::platform
