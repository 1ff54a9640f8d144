#include "arena/bars.h"

#include <atomic>

#include "arena/realm.h"
#include "platform/platform.h"

namespace rh::bars {

namespace {

constinit std::atomic<size_t> g_count{0};

uintptr_t bar_of(const Span* unit) { return g_realm.address(unit) + kUnitSize - kSlabGuard; }

void note_gone(Span* unit) {
  unit->guarded = false;
  g_count.fetch_sub(1, std::memory_order_relaxed);
}

bool put(const Span* unit) {
  if (platform::page_size() > kSlabGuard) return false;
  bool done =
      g_count.fetch_add(1, std::memory_order_relaxed) < platform::kMostBars && platform::bar(bar_of(unit), kSlabGuard);
  if (!done) g_count.fetch_sub(1, std::memory_order_relaxed);
  return done;
}

}  // namespace

void open(Span* first, Span* end) {
  for (Span* unit = first; unit < end; ++unit)
    if (unit->guarded && platform::unbar(bar_of(unit), kSlabGuard)) note_gone(unit);
}

// Making a bar may interrupt other processors: there is one behind each long span, and behind others where they reach
// over a multiple of so many units.
void put_at_end(Span* span) {
  constexpr size_t kUnits = 16, kLong = 8;
  Span* last = span + span->units - 1;
  open(span, last);
  size_t first = static_cast<size_t>(span - g_realm.first());
  bool is_place = span->units >= kLong || first / kUnits != (first + span->units) / kUnits;
  if (is_place && !last->guarded) last->guarded = put(last);
}

void forget(Span* first, Span* end) {
  for (Span* unit = first; unit < end; ++unit)
    if (unit->guarded) note_gone(unit);
}

}  // namespace rh::bars
