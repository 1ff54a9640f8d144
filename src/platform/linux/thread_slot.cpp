#include "platform/thread_slot.h"

namespace rh::platform {

constinit thread_local ThreadSlot t_slot{&g_unset, 0};

}  // namespace rh::platform
