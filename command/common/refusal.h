// Why something cannot be done, and the status to end with.
#pragma once

#include "text.h"

namespace rh::command {

// As env, nohup and the shells have it: what the command itself did wrong is told apart from any
// status its program could have.
enum ExitStatus {
  exit_reached = 0,
  exit_not_reached = 1,
  exit_usage = 2,
  exit_failed = 125,
  exit_not_executable = 126,
  exit_not_found = 127,
};

struct Refusal {
  int status = 0;  // 0: nothing is refused
  Str message;

  explicit operator bool() const { return status != 0; }
};

}  // namespace rh::command
