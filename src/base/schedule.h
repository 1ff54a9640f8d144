// Where the steps of one thread may be followed by another's: before a lock is tried or a word is read that others write,
// after one is written. tests/model tries the orders out; in everything else this is nothing.
#pragma once

#include "base/compiler.h"

namespace rh {

#if defined(RH_MODEL)
void schedule_point();
#else
RH_INLINE void schedule_point() {}
#endif

}  // namespace rh
