// The last pages of spans, made inaccessible: what hardened builds have behind a slab or large block where a page is no
// longer than kSlabGuard. A bar stays there when that ends: the next one will often lie in the same place.
#pragma once

#include "arena/span.h"

namespace rh::bars {

// Removes those of the units from `first` to before `end`, which are in use as something else now.
void open(Span* first, Span* end);

// Removes those within a span in use, and makes one at its end where there is to be one, if the OS lets it and there
// are not too many.
void put_at_end(Span* span);

// Those of the units from `first` to before `end` have gone with their memory.
void forget(Span* first, Span* end);

}  // namespace rh::bars
