// The library's options as the launcher takes them.
#pragma once

#include <CLI/App.hpp>

namespace rh::command {

// Each of them becomes a variable of the launcher's environment, and so of the program's.
void add_settings(CLI::App& command);

}  // namespace rh::command
