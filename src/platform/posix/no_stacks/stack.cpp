// For processors whose frames are not followed.
#include "platform/platform.h"

namespace rh::platform {

unsigned stack(uintptr_t*, unsigned) { return 0; }

bool find_code(uintptr_t, CodePlace*) { return false; }

void each_module(void (*)(const Module& module, void* context), void*) {}

}  // namespace rh::platform
