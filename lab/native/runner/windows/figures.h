// What Windows counts of processes. A figure that it does not count is absent; what Wine does not count is left out by
// knowing it is Wine, never by the look of a number.
#pragma once

#include <windows.h>

#include <vector>

#include "runner/lines.h"

namespace runner {

// Processor time of a process, ended or not.
Figure used_by(HANDLE process);

std::vector<DWORD> processes_of(HANDLE job);

// Of all processes of a job, now.
Sample look_at(HANDLE job);
// What the job has used from its start to now; of `process` alone the peak of resident memory.
void add_costs(HANDLE job, HANDLE process, End& end);

}  // namespace runner
