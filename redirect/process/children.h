// Programs that this one starts are reached too.
#pragma once

#include "imports.h"

namespace rh::inject {

// For DllMain, when the process begins: follows the processes it makes, if that was asked for. Those are told of
// nothing that is left. NULL, or why they cannot be followed.
const char* follow_children(HMODULE library, const Settings& settings);

}  // namespace rh::inject
