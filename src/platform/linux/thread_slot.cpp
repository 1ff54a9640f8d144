#include "platform/thread_slot.h"

namespace rh::platform {

constinit RH_THREAD_LOCAL ThreadSlot t_slot{&g_unset, 0};

}  // namespace rh::platform
