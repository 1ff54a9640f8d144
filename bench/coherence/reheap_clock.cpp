// reheap's clock is that of the simulated cores.
#include "coherence.h"
#include "platform/platform.h"

uint64_t rh::platform::now_ms() { return coherence::now_ms(); }
