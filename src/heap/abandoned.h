// Heaps whose threads are gone: they ended, were terminated, or were not forked along.
#pragma once

#include "heap/large.h"

namespace rh::abandoned {

// The owner of leaked slabs: what is freed into them is not used again.
extern constinit Heap g_leaked;

// Hands it the slabs of the heaps that are lost; their large blocks have no store to go back to, and what lies in their
// stores is nobody's.
template <typename IsLost> void leak_slabs(IsLost is_lost) {
  g_realm.each_span([is_lost](Span* span) {
    const Heap* owner = without_notes(span->owner.load_acquire());
    if (owner == nullptr || owner == &g_leaked || !is_lost(owner)) return;
    SpanKind kind = span->kind.load();
    if (kind == SpanKind::slab) span->owner.store_release(&g_leaked);
    if (kind == SpanKind::large) span->owner.store_release(with_note(kNobody, large::is_delayed(span) ? kDelayed : 0));
    if (kind == SpanKind::kept || kind == SpanKind::kept_tail) {
      span->kind.store(SpanKind::none);
      span->owner.store(nullptr);
    }
  });
}

// The caller has just become the owner: the tenant is one that was never there.
void note_tenant(Heap* heap);

// The caller has just become the owner of a heap left behind, and holds its lock, by `token`. What its thread changes
// without the lock is put right when that thread may have been anywhere.
void take_over(Heap* heap, ThreadToken token);

}  // namespace rh::abandoned
