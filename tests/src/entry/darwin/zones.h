// The zones of a process, as Darwin keeps them.
#pragma once

#include <malloc/malloc.h>

#include <vector>

namespace zones {

// In their order. At first the system's: what it makes blocks with, and one more.
std::vector<malloc_zone_t*>& registered();
malloc_zone_t* of_system();

// What malloc_default_purgeable_zone found to be the first when it was first called.
malloc_zone_t* purgeable_over();

// What has been freed into the system's zone, and what had been given new sizes there.
int freed();
int resized();

// A block of the system's zone.
void* made(size_t size);

// Somebody else puts a zone of theirs last, so many times, whenever one is taken away.
void disturb(int times);

}  // namespace zones
