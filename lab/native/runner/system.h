// What each system calls itself, and things: linux/system.cpp, windows/system.cpp.
#pragma once

namespace runner {

extern const char kSystemName[];
extern const char kWritingMode[];  // of std::fopen, for a file that the command does not inherit

}  // namespace runner
