#pragma once

#include "entry/origin.h"

namespace rh::origin {

// Whether malloc, for programs in this process, is ours.
bool serves_malloc();

}  // namespace rh::origin
