// Only in the shared library: where all is linked statically dlopen needs the C library's.
#include "entry/linux/opening.h"

#if defined(LM_ID_BASE)  // musl has one namespace

static constinit rh::NextFunction<void*(Lmid_t, const char*, int)> g_dlmopen{"dlmopen"};

// Another namespace has a C library of its own, whose malloc and free are a pair.
RH_JUMPS_AS(dlmopen, open_library_in, (Lmid_t space, const char* file, int flags)) {
  if (space == LM_ID_BASE) flags = rh::without_deep_binding(flags);
  RH_JUMP g_dlmopen.get()(space, file, flags);
}

#endif
