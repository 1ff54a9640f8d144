// The lab (lab/) measures what allocators do for a program. It is Python's; this command only passes the call on.
#pragma once

namespace rh::command {

// compare, record, and what else the lab does.
bool is_lab_command(const char* word);

// Becomes `reheap-lab` with these words. Throws Failure, which says how it is installed, when it is not.
[[noreturn]] void become_lab(char** words);

}  // namespace rh::command
