// The C runtimes whose functions were replaced, each in a slot of its own. A replacement function knows its slot at
// compile time, so that what it cannot do itself goes to the runtime that was called: blocks made there, errno, the new
// handler.
#pragma once

#include <cstddef>

#include "entry/windows/crt.h"
#include "names.h"
#include "redirect/patcher/image.h"

namespace rh::redirect {

inline constexpr unsigned kSlots = 16;

// What the runtime's functions did before, by role; NULL where it has none or it was not replaced.
struct Originals {
  const void* of[kRoles] = {};
  const void*& operator[](Role role) { return of[static_cast<size_t>(role)]; }
};

struct Slot {
  crt::Host host;
  Originals originals;
};

inline constinit Slot g_slots[kSlots] = {};

// ---- what each set of replacement functions defines ----

// The function that takes the role in the slot's runtime.
const void* replacement(unsigned slot, Role role);

// Fills in the slot's host, from the originals that stand there already, before the first replacement can run.
// `debug_heap`: the runtime has headers before its blocks that only its debug functions know.
void set_host(unsigned slot, const Image& runtime, bool debug_heap);

// Whether what they hand out are other blocks than the runtime's, of which the system's heap knows nothing.
bool has_blocks_of_its_own();

}  // namespace rh::redirect
