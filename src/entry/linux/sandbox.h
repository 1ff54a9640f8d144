// Whether the process is in a sandbox of system calls: then only such calls are made as the C library's malloc makes,
// and the program itself.
#pragma once

namespace rh::sandbox {

// Asks the system once. One that closes later is known by note_closing, where its door is a function of the C
// library's.
bool is_closed();

void note_closing();

}  // namespace rh::sandbox
