// The launcher's command line. What stands behind -- is the program's, and is never taken apart and put together again.
#pragma once

#include <string>
#include <vector>

namespace rh::command {

struct CommandLine {
  std::vector<std::wstring> words;  // the launcher's own, without its name
  bool has_program = false;         // a -- stands there
  std::wstring program_line;        // all behind the --, character by character
  std::wstring program;             // its first word
};

CommandLine split(const wchar_t* line);

}  // namespace rh::command
