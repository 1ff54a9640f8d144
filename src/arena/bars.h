// The last pages of spans, made inaccessible: what hardened builds have behind a slab or large block where a page is no
// longer than kSlabGuard. A bar stays there when that ends: the next one will often lie in the same place.
#pragma once

#include "arena/realm.h"

namespace rh::bars {

// Removes those of the units from `first` to before `end`, which are in use as something else now. False when the OS
// refuses, as one of a sandbox that was closed since may: then nothing may lie there.
[[nodiscard]] bool open(Span* first, Span* end);

// Removes those within a span in use, and makes one at its end where there is to be one, if the OS lets it and there
// are not too many. What an earlier span left at the end of one that is to have none stays, or goes. False as above.
enum class Elsewhere : uint8_t { stays, goes };
bool put_at_end(Span* span, Elsewhere elsewhere);

// Making a bar may interrupt other processors: there is to be one behind each long span, and behind others where they
// reach over a multiple of so many units.
inline bool is_place(const Span* span, size_t units) {
  constexpr size_t kUnits = 16, kLong = 8;
  const size_t first = static_cast<size_t>(span - g_realm.first());
  return units >= kLong || first / kUnits != (first + units) / kUnits;
}

// Those of the units from `first` to before `end` have gone with their memory.
void forget(Span* first, Span* end);

}  // namespace rh::bars
