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

// The function that takes the role.
const void* replacement(Role role);

// To be called before the first replacement can run.
void set_originals(const Originals& originals);

}  // namespace rh::heaps
