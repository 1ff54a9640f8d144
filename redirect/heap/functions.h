// The functions that take the place of ntdll's. Who made a block is found in this order: this heap, another copy of it,
// the heap that was there before; so a block goes back to its maker whatever handle it comes with.
#pragma once

#include "names.h"

namespace rh::heaps {

// What ntdll's functions did before, by role; NULL where there is none.
struct Originals {
  const void* of[kRoles] = {};
  const void*& operator[](Role role) { return of[static_cast<size_t>(role)]; }
};

// ---- what each set of replacement functions defines ----

// The function that takes the role; NULL: the original keeps it.
const void* replacement(Role role);

// Called before the first replacement can run. NULL, or why the heap cannot be replaced.
const char* begin(const Originals& originals);

}  // namespace rh::heaps
