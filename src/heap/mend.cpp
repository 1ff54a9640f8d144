#include "heap/mend.h"

#include "heap/fork.h"
#include "heap/registry.h"

namespace rh::mend {

namespace {

// Others may free its blocks meanwhile, and its owner may, without the lock: what they still do to the slabs is of no
// account.
void give_up(Heap* heap) {
  fork::give_up_slabs([heap](const Heap* owner) { return owner == heap; });
  for (size_t index = 0; index < size_class::kCount; ++index) {
    heap->current[index] = nullptr;
    heap->available[index] = {};
  }
  heap->stash = heap->full = heap->large = {};
  heap->stashed = 0;
}

Heap* heap_of(Lock* lock) {
  return reinterpret_cast<Heap*>(reinterpret_cast<uintptr_t>(lock) - offsetof(Heap, lock));
}

// The caller has taken the lock over.
void put_in_order(Lock& lock) {
  if (&lock == &g_arena.lock()) return g_arena.give_up_free();
  if (&lock == &registry::lock()) return registry::put_in_order();
  give_up(heap_of(&lock));
}

}  // namespace

void watch() { g_put_in_order.store(put_in_order, std::memory_order_release); }

void settle(Heap* heap) {
  if constexpr (!platform::kThreadsAreTerminated) return;
  for (Outgoing& out : heap->outgoing) {
    if (out.first == nullptr) {
      out = {};
      continue;
    }
    out.slab = slab::head(g_realm.span_of(out.first));
    out.count = 1;
    for (out.last = out.first; out.last->next != slab::batch_end(); out.last = out.last->next)
      ++out.count;
  }
}

}  // namespace rh::mend
