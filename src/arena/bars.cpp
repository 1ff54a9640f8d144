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

bool open(Span* first, Span* end) {
  for (Span* unit = first; unit < end; ++unit) {
    if (!unit->guarded) continue;
    if (!platform::unbar(bar_of(unit), kSlabGuard)) return false;
    note_gone(unit);
  }
  return true;
}

bool put_at_end(Span* span, Elsewhere elsewhere) {
  Span* last = span + span->units - 1;
  if (!open(span, last)) return false;
  if (!is_place(span, span->units)) return elsewhere == Elsewhere::stays || open(last, last + 1);
  if (!last->guarded) last->guarded = put(last);
  return true;
}

void forget(Span* first, Span* end) {
  for (Span* unit = first; unit < end; ++unit)
    if (unit->guarded) note_gone(unit);
}

}  // namespace rh::bars
