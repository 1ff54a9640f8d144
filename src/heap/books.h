// Whether a heap's books balance, for debug builds: the laws stated above the structures, checked at each slow path.
#pragma once

#include "heap/types.h"

namespace rh::books {

// Of one class's slabs: the current one and some of the available ones. The caller holds heap.lock.
void check_class(const Heap* heap, SizeClass size_class);

// Of all classes, the store, and what is on its way to others, which only the owner looks at. The caller holds
// heap.lock.
void check(const Heap* heap);
void check_outgoing(const Outgoing& out);

}  // namespace rh::books
