#pragma once

#include <windows.h>

// Stands between the CRT and the heap it allocates from, by the CRT's import table. A block of reheap's
// that arrives there is a failure.
bool spy_on_crt();

// Blocks that the CRT has given back to its heap since the last call, and the heap took them.
int take_frees();
