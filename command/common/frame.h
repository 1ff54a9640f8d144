// What the command has on every system: how its help looks, how it tells mistakes, how it ends.
#pragma once

#include "settings.h"

#include <CLI/App.hpp>
// App makes objects of what these define.
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <functional>
#include <string>
#include <vector>

namespace rh::command {

extern const char* const command_version;

// `program`: what the help calls that which stands behind --. `documentation`: the page about it.
void set_up(CLI::App& app, const std::string& program, const std::string& documentation);

// The subcommands of every system, with the flags that mean the same everywhere.
CLI::App& add_run(CLI::App& app, bool& require, bool& quiet);
CLI::App& add_doctor(CLI::App& app, const std::string& description, bool& json);

// An option of the library's; keep(value) takes what was given, in the form that the option allows.
void add_library_option(CLI::App& command, const LibraryOption& option,
                        const std::function<void(const std::string&)>& keep);

// False when that was all: help, or the version. Throws Failure, with the status, at a mistake.
bool parse(CLI::App& app, std::vector<std::string> words, int usage_status);

// The subcommand's name. Throws Failure when there is none.
std::string chosen(const CLI::App& app, const std::string& program);

// The exit status: what act() gives, or that of what it throws, which is told.
int ended(const std::function<int()>& act);

}  // namespace rh::command
