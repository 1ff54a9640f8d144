// Putting reheap.dll into a process that was created suspended. docs/injection.md tells it in full.
#pragma once

#include "imports.h"
#include "outcome.h"
#include "places.h"

namespace rh::inject {

// How a process is started to help; by whoever links this, for in reheap.dll CreateProcess itself is followed.
using StartHelper = bool (*)(const wchar_t* program, wchar_t* command_line, PROCESS_INFORMATION* made);

struct Means {
  const wchar_t* library;  // the reheap.dll to use: of this architecture, or of the process's
  StartHelper start_helper;
  // Through which the process says that the library has arrived (imports.h), or nullptr when nobody waits for that.
  HANDLE section = nullptr;
  bool shown = false;  // the library is known to load there: its file need not be looked at
};

// Makes the library the first import of a process that was created suspended, or has it loaded later when that cannot
// be. The process stays suspended, and as it was created where nothing could be done. Where somebody waits and the
// library comes late, the first thread suspends itself once more when the library should be there.
Outcome enter(const PROCESS_INFORMATION& suspended, const Means& means, const Settings& settings);

// Whether this process cannot write to that one, and a helper of the other architecture has to.
bool out_of_reach(HANDLE process);

// The library for a machine: `library` itself if it is for that one, or what lies beside it.
bool library_for(WORD machine, const wchar_t* library, Path& found);

}  // namespace rh::inject
