// How the launcher ends when it cannot do what it was asked: as the command for Linux does.
#pragma once

#include "../../message.h"

namespace rh::launch {

using ::inject::exit_failed;
using ::inject::exit_not_executable;
using ::inject::exit_not_found;
using ::inject::exit_not_reached;
using ::inject::exit_reached;
using ::inject::exit_usage;
using ::inject::Failure;
using ::inject::say;

}  // namespace rh::launch
