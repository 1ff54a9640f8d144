// `reheap doctor`: what a program is made of, and what in it the library really serves.
#pragma once

#include "command_line.h"

#include <string>

namespace rh::command {

struct DoctorOptions {
  std::string library;
  bool hardened = false;
  bool json = false;
};

// Without a program, the installation. Gives the exit code: exit_reached or exit_not_reached.
int doctor(const DoctorOptions& options, const CommandLine& line);

}  // namespace rh::command
