// What probes need of the system: Event Tracing for Windows.
#pragma once

#include "platform/windows/system.h"

#include <evntprov.h>

namespace rh::platform {

struct EventTracing {
  decltype(&EventRegister) add;
  decltype(&EventWrite) write;
  decltype(&EventUnregister) remove;
};

// From now on events are written by these, while somebody wants them.
void use_event_tracing(const EventTracing& functions);

}  // namespace rh::platform
