// ntdll's heap functions on a peer, as reheap's heap layer replaces them.
#pragma once

namespace rh::peers {

// NULL, or why nothing was replaced.
const char* replace_heaps();

}  // namespace rh::peers
