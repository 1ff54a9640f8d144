// The C runtime that this library is linked beside.
#pragma once

#include "entry/windows/crt.h"

namespace rh {

extern const crt::Host g_own_host;

}  // namespace rh
