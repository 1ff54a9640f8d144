// For the C library's functions that change what a process may do, or ask for a process of one thread. The helper
// thread is none of the C library's: what it tells its threads, the helper would not hear. So it is ended before each,
// and nobody makes one meanwhile (heap/idle.h).
#pragma once

#include "entry/linux/next.h"
#include "heap/idle.h"

// Defines `result name parameters`, of the C library's by that name, as `call` with the helper out of the way. The
// program's own declarations are the C library's; here only the shape counts.
#define RH_ALONE(result, name, parameters, call)                                   \
  static constinit rh::NextFunction<result parameters> g_##name{#name};            \
  extern "C" [[gnu::visibility("default")]] result name parameters RH_C_NOEXCEPT;  \
  extern "C" [[gnu::visibility("default")]] result name parameters RH_C_NOEXCEPT { \
    rh::idle::WithoutHelper alone;                                                 \
    return call;                                                                   \
  }
