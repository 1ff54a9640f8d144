// The part that each system does in its own way: linux/run.cpp, windows/run.cpp.
#pragma once

#include "runner/lines.h"
#include "runner/options.h"

namespace runner {

// Runs the command and writes every line about it. Throws Failure.
void run(const Options& options, Lines& lines);

}  // namespace runner
