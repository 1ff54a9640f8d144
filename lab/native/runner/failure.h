// What ends the runner before it could measure: a message for standard error and an exit status.
#pragma once

#include <stdexcept>
#include <string>

namespace runner {

inline constexpr int kUsage = 2;
inline constexpr int kOwnFault = 125;  // the runner could not do its part
inline constexpr int kCannotExecute = 126;
inline constexpr int kNotFound = 127;

struct Failure : std::runtime_error {
  Failure(int exit_status, const std::string& message) : std::runtime_error(message), status(exit_status) {}
  int status;
};

}  // namespace runner
