#include "heap/mend.h"

#include <new>

#include "base/compiler.h"
#include "heap/abandoned.h"
#include "heap/accounts.h"
#include "heap/regions.h"
#include "heap/registry.h"
#include "heap/slab_lists.h"
#include "profile/profile.h"

namespace rh::mend {

namespace {

// Others may free its blocks meanwhile, and its owner may, without the lock: what they still do to the slabs is of no
// account.
void give_up(Heap* heap) {
  abandoned::leak_slabs([heap](const Heap* owner) { return owner == heap; });
  for (size_t index = 0; index < size_class::kCount; ++index) {
    heap->current[index] = nullptr;
    heap->available[index] = {};
  }
  heap->full = heap->large = {};
  forget_sparse(heap);
  accounts::forget_held(heap);
  new (&heap->store) SpanStore;
}

Heap* heap_of(Lock* lock) { return reinterpret_cast<Heap*>(reinterpret_cast<uintptr_t>(lock) - offsetof(Heap, lock)); }

// The caller has taken the lock over.
void put_in_order(Lock& lock) {
  if (&lock == &g_arena.lock()) return g_arena.give_up_free();
  if (&lock == &registry::lock()) return registry::put_in_order();
  if (&lock == &profile::lock()) return profile::begin_anew();
  if (!regions::put_in_order(lock)) give_up(heap_of(&lock));
}

}  // namespace

RH_AT_START void watch() { g_put_in_order.store(put_in_order, std::memory_order_release); }

}  // namespace rh::mend
