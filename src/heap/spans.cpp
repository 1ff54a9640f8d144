#include "heap/spans.h"

#include "heap/accounts.h"
#include "heap/retained.h"

namespace rh::spans {

namespace {

// When so much waits for an owner, who sends more looks after the inbox itself: the owner may be asleep, or gone.
constexpr Units kHelpFrom = Units::holding(1 << 20);

// What waits is counted as held back in such steps.
constexpr size_t kCountedUnits = kHelpFrom.count / 2;

// The store changes with each span. So it counts as what it may hold, from its first span until all of it goes back.
void count(Heap* heap, Units units) {
  if (RH_LIKELY(units == heap->store_counted)) return;
  if (units > heap->store_counted)
    retained::add((units - heap->store_counted).bytes());
  else
    retained::subtract((heap->store_counted - units).bytes());
  heap->store_counted = units;
}

void drain(Heap* heap, ThreadToken token) {
  if (heap->span_inbox.load(std::memory_order_relaxed) == nullptr) return;
  Span* span = heap->span_inbox.exchange(nullptr, std::memory_order_acquire);
  size_t waited = heap->units_waiting.exchange(0, std::memory_order_relaxed);
  if (size_t counted = align_down(waited, kCountedUnits); counted != 0) retained::subtract(Units{counted}.bytes());
  while (span != nullptr) {
    Span* next = span->next;
    heap->store.give(span, Use::block, heap, token);
    span = next;
  }
}

}  // namespace

Span* take(Heap* heap, Units units, Use use, ThreadToken token) {
  if (!accounts::charge(heap, units)) return nullptr;
  drain(heap, token);
  Span* span = heap->store.take(units, use, heap, token, heap->partition);
  if (RH_UNLIKELY(span == nullptr)) accounts::discharge(heap, units);
  RH_CHECK(span == nullptr || partition_of(span) == heap->partition);
  count(heap, heap->store.budget());
  return span;
}

void give(Heap* heap, Span* span, Use use, ThreadToken token) {
  accounts::discharge(heap, Units{span->units});
  heap->store.give(span, use, heap, token);
  count(heap, heap->store.budget());
}

void give_all(Heap* heap, SpanList* spans, ThreadToken token) {
  for (const Span* span = spans->first(); span != nullptr; span = span->next)
    accounts::discharge(heap, Units{span->units});
  heap->store.give_all(spans, heap, token);
  count(heap, heap->store.budget());
}

void give_back_all(Heap* heap, ThreadToken token) {
  drain(heap, token);
  heap->store.empty(token);
  count(heap, {});
}

void give_from_afar(Heap* home, Span* span, ThreadToken token) {
  Units units{span->units};
  Span* first = home->span_inbox.load(std::memory_order_relaxed);
  do {
    schedule_point();
    span->next = first;
  } while (!home->span_inbox.compare_exchange_weak(first, span, std::memory_order_release, std::memory_order_relaxed));
  size_t before = home->units_waiting.fetch_add(units.count, std::memory_order_relaxed), waiting = before + units.count;
  size_t steps = waiting / kCountedUnits - before / kCountedUnits;
  if (steps != 0) retained::add(Units{steps * kCountedUnits}.bytes());
  if (waiting < kHelpFrom.count || !home->lock.try_acquire(token)) return;
  drain(home, token);
  count(home, home->store.budget());
  home->lock.release();
}

}  // namespace rh::spans
