// Points where another thread may run between the steps of this one: before a lock is tried or a word that others write
// is read, and after one is written. tests/model tries the possible orders; everywhere else this does nothing.
#pragma once

#include "base/compiler.h"

namespace rh {

#if defined(RH_MODEL)
void schedule_point();
#else
RH_INLINE void schedule_point() {}
#endif

}  // namespace rh
