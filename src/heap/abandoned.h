// Heaps whose threads are gone: they ended, were terminated, or were not forked along.
#pragma once

#include "heap/types.h"

namespace rh::abandoned {

// The owner of leaked slabs: what is freed into them is not used again.
extern constinit Heap g_leaked;

// Hands it the slabs of the heaps that are lost.
template <typename IsLost> void leak_slabs(IsLost is_lost) {
  g_realm.each_span([is_lost](Span* span) {
    SpanKind kind = span->kind.load();
    if (kind != SpanKind::slab && kind != SpanKind::large) return;
    const Heap* owner = owner_of(span);
    if (owner == nullptr || owner == kNobody || !is_lost(owner)) return;
    span->owner.store_release(kind == SpanKind::slab ? &g_leaked : kNobody);
  });
}

// The caller has just become the owner of a heap left behind, and holds its lock. What its thread changes without the
// lock is put right when that thread may have been anywhere.
void take_over(Heap* heap);

}  // namespace rh::abandoned
