// Every block that somebody holds, for tools that ask a malloc zone for them.
#pragma once

#include <cstddef>

namespace rh::census {

// Visits each with its usable size, in the order of their addresses, those of first-class heaps within the realm too.
// Right where no other thread allocates or frees meanwhile, as in a debugger; else what is changed may be missing or
// told too much, and nothing is read that is not there. Takes no lock, allocates nothing.
using Visit = void(void* block, size_t size, void* context);
void each_block(Visit* visit, void* context);

}  // namespace rh::census
