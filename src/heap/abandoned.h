// Heaps whose threads are gone: they ended, were terminated, or were not forked along.
#pragma once

#include "heap/types.h"

namespace rh::abandoned {

// The owner of slabs that were given up: what is freed into them is not used again.
extern constinit Heap g_given_up;

// Hands it those of the heaps that are lost.
template <typename IsLost>
void give_up_slabs(IsLost is_lost) {
  g_realm.each_span([is_lost](Span* span) {
    SpanKind kind = span->kind.load();
    if (kind != SpanKind::slab && kind != SpanKind::large) return;
    const Heap* owner = owner_of(span);
    if (owner == nullptr || owner == kNobody || !is_lost(owner)) return;
    span->owner.store_release(kind == SpanKind::slab ? &g_given_up : kNobody);
  });
}

// The caller has just become the owner of a heap left behind, and holds its lock. What its thread changes without the
// lock is put right when that thread may have been anywhere.
void take_over(Heap* heap);

}  // namespace rh::abandoned
