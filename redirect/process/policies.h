// What the mitigation policies of a process mean for a library that comes into it and replaces functions. Only those
// that decide something: others (handles, fonts, extension points, system calls, child processes) have no say here.
#pragma once

#include "library.h"
#include "outcome.h"

namespace rh::inject {

// Whether the policies keep the same out of both processes.
bool restricted_alike(HANDLE one, HANDLE other);

// Why nothing could be replaced in the process, whatever the library; none when nothing speaks against it.
Obstacle forbids_any(HANDLE process);

// Why this library would not be let in. `path` is its file's, in full.
Obstacle forbids(HANDLE process, const LibraryFile& file, const wchar_t* path);

}  // namespace rh::inject
