// Opening libraries without RTLD_DEEPBIND. One that is opened with this flag looks into its own dependencies first, the
// C library among them: its free is then the C library's, and gets blocks that the C library's strdup has from us. So
// the flag is taken away where malloc is ours.
//
// dlopen looks where its caller may look ($ORIGIN, DT_RUNPATH, the namespace), and tells the caller by the return
// address: so the C library's is jumped to, not called.
#pragma once

#include <dlfcn.h>

#include "entry/linux/next.h"
#include "entry/linux/origin.h"

#if defined(__clang__)
#define RH_OPTIMIZED
#define RH_JUMP [[clang::musttail]] return
#else
#define RH_OPTIMIZED [[gnu::optimize("O2")]]  // whatever the build
#define RH_JUMP return
#endif

// Begins the definition of `name`, which jumps. By that name alone it would be noexcept, as the C library declares it,
// and with exceptions there is then something left to do after a call.
#define RH_JUMPS_AS(name, ours, parameters)                                   \
  extern "C" [[gnu::visibility("default")]] void* ours parameters asm(#name); \
  RH_OPTIMIZED void* ours parameters

namespace rh {

inline int without_deep_binding(int flags) {
#if defined(RTLD_DEEPBIND)
  if ((flags & RTLD_DEEPBIND) != 0 && origin::serves_malloc()) flags &= ~RTLD_DEEPBIND;
#endif
  return flags;
}

}  // namespace rh
