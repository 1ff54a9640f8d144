#include "entry/linux/opening.h"

static constinit rh::NextFunction<void*(const char*, int)> g_dlopen{"dlopen"};

RH_JUMPS_AS(dlopen, open_library, (const char* file, int flags)) {
  flags = rh::without_deep_binding(flags);
  if (auto* next = g_dlopen.get()) RH_JUMP next(file, flags);
  // All is linked statically. The C library's was not, for this stands in its place; but what does the same was.
#if defined(LM_ID_BASE)
  return dlmopen(LM_ID_BASE, file, flags);
#else
  return nullptr;
#endif
}
