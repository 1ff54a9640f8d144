// Fork, at any moment of any thread, from signal handlers too.
//
// The forking thread takes every lock before the fork, so that what they guard is whole in the child, and notes how far
// each list had come that others change without a lock: what was in it then stays as it is, and the child goes on from
// there. The thread waits for a lock only so long, and others wait for it only so long (platform/lock.h): what could not
// be held is given up in the child, which starts anew beside it. docs/design/fork.md says why this is enough.
#pragma once

#include "heap/heap.h"

namespace rh::fork {

// For the platform to call around every fork.
void before();
void after_in_parent();
void after_in_child();

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

// In a child: the caller became the owner of a heap whose thread was not forked along, and holds its lock. What that
// thread changes without the lock goes back to where it was noted.
void restore(Heap* heap);

}  // namespace rh::fork
