// What will run when a command line is started, and whether a preloaded library gets into it.
#pragma once

#include "common/refusal.h"
#include "elf_file.h"

namespace rh::command {

// Why a preloaded library cannot get into a program.
enum class Obstacle : std::uint8_t {
  none,
  static_program,      // no loader that would preload anything
  secure_execution,    // the loader ignores the environment: setuid, setgid, file capabilities
  foreign_loader,      // neither glibc's nor musl's
  other_architecture,  // than the library's
};

// A script's interpreter may be a script: so many files the kernel follows.
inline constexpr std::size_t deepest_chain = 6;

struct Program {
  // The file that is started, the interpreter its #! names, the interpreter's, …
  Str chain[deepest_chain];
  std::size_t chain_length = 0;
  Str script_argument;    // what the last #! line gives its interpreter
  ElfFile elf;            // of the last of the chain; not valid when that is none or cannot be read
  bool by_shell = false;  // a script without #!: the kernel refuses it, and the shell runs it
  Obstacle obstacle = Obstacle::none;
  Str reason;  // the obstacle in words, fitting after "… cannot be reached: "

  const Str& path() const { return chain[0]; }
  const Str& image() const { return chain[chain_length - 1]; }  // what the kernel loads
};

// Finds what `name` starts, as execvp would (`search_path` is PATH's value, for names without a slash;
// nullptr when it is not set), and looks into it.
Refusal inspect(Str name, const char* search_path, Program& program);

bool is_musl_loader(Str path);

// What `#!/usr/bin/env NAME` starts: NAME, or empty when the program is no such script.
Str started_by_env(const Program& program);

// Whether children of the program can be reached though the program itself cannot: the environment
// passes through it unharmed.
bool children_reachable(const Program& program);

}  // namespace rh::command
