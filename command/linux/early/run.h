// `reheap run`: becomes the program, with the library under it.
#pragma once

#include "common/settings.h"
#include "library.h"
#include "program.h"

namespace rh::command {

struct RunOptions {
  Settings settings;
  bool require = false;  // fail rather than run a program that cannot be reached
  bool quiet = false;    // say nothing about a program that cannot be reached
};

struct Plan {
  Program program;
  Str library;  // empty when the program runs without: its obstacle says why
};

// Looks at what `arguments` would start, and finds the library for it.
Refusal plan(const RunOptions& options, char* const* arguments, char* const* environment, Plan& plan);

// Becomes the program. Returns only when that fails: a negative error number.
long become(const Plan& plan, const RunOptions& options, char* const* arguments, char* const* environment);

// The command's line, cut at the first `--`. What stands before it is the command's own; what stands
// behind it belongs to the program, is never parsed, and reaches it as it was given.
struct CommandLine {
  int own = 0;                     // how many words stand before --
  char* const* program = nullptr;  // the words behind it, ended by nullptr; nullptr without --
};

CommandLine split(int count, char* const* words);

}  // namespace rh::command
