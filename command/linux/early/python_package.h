// Where pip puts what is not a command.
#pragma once

#include "common/text.h"

namespace rh::command {

// The folder of the Python package that the command came with, when it lies in a folder in `prefix`; empty when there
// is none. Of the packages of several Pythons the newest one's, whose pip was most likely the last to write it.
Str python_package(Str prefix);

}  // namespace rh::command
