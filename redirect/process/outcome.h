// How entering a process went, in words.
#pragma once

#include <windows.h>

namespace rh::inject {

enum class Entry : unsigned char {
  none,
  first_import,  // before any C runtime is there
  late_load,     // after the imports' initialisation, before the program's first instruction
  count,
};

// Why a process was not entered, or not as its first import.
enum class Obstacle : unsigned char {
  none,
  unreadable,
  not_writable,
  no_room,
  no_import_directory,
  fixed_tables,
  path_not_ascii,
  managed,
  go,
  cygwin,
  signed_only,
  guarded_only,
  shadow_stack_only,
  local_only,
  no_new_code,
  no_library,
  no_launcher,
  helper_failed,
  damaged,
  not_loaded,
  count,
};

struct Outcome {
  Entry entry = Entry::none;
  Obstacle obstacle = Obstacle::none;
  DWORD error = 0;  // GetLastError, where there was one

  bool entered() const { return entry != Entry::none; }
};

// A half sentence that tells an obstacle.
const char* text_of(Obstacle obstacle);

// An outcome as an exit code and back: how one launcher answers another.
DWORD pack(const Outcome& outcome);
Outcome unpack(DWORD packed);

}  // namespace rh::inject
