// `reheap run`: the program on reheap, with everything that was the launcher's.
#pragma once

#include "command_line.h"

#include <string>

namespace rh::command {

struct RunOptions {
  std::string library;
  bool hardened = false;
  bool children = true;
  bool require = false;
  bool quiet = false;
};

// Ends with the program, by its exit code.
[[noreturn]] void run(const RunOptions& options, const CommandLine& line);

}  // namespace rh::command
