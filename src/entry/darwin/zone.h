// Darwin's way to be malloc: a zone, a table of functions, that stands first among the process's. What the system's
// malloc is asked for it asks of the first; what it is to free, of the zone that says the block is its.
#pragma once

#include <malloc/malloc.h>

namespace rh::zone {

// Puts ours first, for good. To be called once, when the library is loaded.
void stand_first();

// Whether it has been put there: before that nothing is to come from us, for the system would not know whose it is.
bool stands_first();

// The zone that made the block; null when none did.
malloc_zone_t* maker_of(const void* block);

// What realloc is to make of a size: on Darwin none is a block as short as there is.
inline size_t size_for_realloc(size_t size) { return size != 0 ? size : 1; }

}  // namespace rh::zone
