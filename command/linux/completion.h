// `reheap completion SHELL`: the completion scripts, made from the options the command has.
#pragma once

#include <CLI/App.hpp>

#include <string>

namespace rh::command {

// `shell`: bash, zsh or fish.
std::string completion_script(const CLI::App& command, const std::string& shell);

}  // namespace rh::command
