// The file a program's name stands for.
#pragma once

#include <string>

namespace rh::command {

// As CreateProcess and cmd.exe look for it: with .exe, .com, .bat or .cmd where the name has none of them; a bare name
// in the current folder, those of the system and those of PATH. Unlike CreateProcess, not beside the launcher: without
// it that folder would not count. Empty when there is none.
std::wstring find_program(const std::wstring& name);

}  // namespace rh::command
