// What Windows counts of processes. A figure that it does not count is absent: Wine answers all of these questions, but
// says 0, or something else than was asked for.
#pragma once

#include <windows.h>

#include <vector>

#include "runner/lines.h"

namespace runner {

// What Wine 8 was seen to do is left out by this alone, never by the look of a number.
bool under_wine();

std::vector<DWORD> processes_of(HANDLE job);

// Of all processes of a job, now.
Sample look_at(HANDLE job);
// What the job has used from its start to now; of `process` alone the peak of resident memory.
void add_costs(HANDLE job, HANDLE process, End& end);

}  // namespace runner
