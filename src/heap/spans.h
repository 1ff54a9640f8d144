// Where a heap's spans come from, for slabs and for blocks of their own, and where they go: its store
// (arena/span_store.h) first. A span freed by another thread waits in the heap's span inbox.
#pragma once

#include "heap/accounts.h"
#include "heap/types.h"

namespace rh::spans {

using Use = SpanStore::Use;

// The caller holds heap.lock, by `token`. An allocated span of exactly `units`, at most SpanStore::kLongest; null when
// there is no memory.
Span* take(Heap* heap, Units units, Use use, ThreadToken token);

// The same, in hardened builds of those that `open` makes usable as a whole. Where it cannot, because the OS keeps a
// guard there, nobody gets the memory again.
template <typename Open> Span* take_open(Heap* heap, Units units, Use use, ThreadToken token, Open open) {
  Span* span = take(heap, units, use, token);
  if constexpr (kHardened)
    while (span != nullptr && !open(span)) {
      accounts::discharge(heap, units);
      span = take(heap, units, use, token);
    }
  return span;
}

// The same as take. Takes back a span of that heap, an allocated one that is neither slab nor block.
void give(Heap* heap, Span* span, Use use, ThreadToken token);

// The same of many.
void give_all(Heap* heap, SpanList* spans, ThreadToken token);

// The same. Gives the arena all that is free.
void give_back_all(Heap* heap, ThreadToken token);

// By any thread, holding no lock: gives back the span of a block that came from `home`.
void give_from_afar(Heap* home, Span* span, ThreadToken token);

}  // namespace rh::spans
