#include "heap/abandoned.h"

namespace rh::abandoned {

constinit Heap g_leaked;

namespace {

constinit std::atomic<Tenant> g_next_tenant{kFirstTenant};

void restore_free_list(Span* slab) {
  BlockPosition note = slab->freed.at_fork;
  slab->free = note == kNoPosition ? nullptr : slab::block_at(slab, note);
  slab::recount(slab);
}

// In a fork's child the thread is not there: its lists go back to where they were noted.
void restore_free_lists(Heap* heap) {
  if (heap->fork_state != ForkState::to_restore) return;
  heap->fork_state = ForkState::whole;
  g_realm.each_span([heap](Span* span) {
    if (span->kind.load() == SpanKind::slab && owner_of(span) == heap) restore_free_list(span);
  });
}

// The thread may have been terminated between any two steps.
void recount_outgoing(Heap* heap) {
  if constexpr (!platform::kThreadsAreTerminated) return;
  for (Outgoing& out : heap->outgoing) {
    if (out.empty()) {
      out.clear();
      continue;
    }
    out.owner = owner_of(out.slab);
    Block* last = slab::block_at(out.slab, out.first);
    for (out.count = 1; last->next != nullptr; last = last->next) ++out.count;
    out.last = slab::position_of(out.slab, last);
  }
  for (Parcel& parcel : heap->parcels)
    if (parcel.first == nullptr) parcel = {};
}

}  // namespace

void note_tenant(Heap* heap) { heap->tenant.store_release(g_next_tenant.fetch_add(1, std::memory_order_relaxed)); }

void take_over(Heap* heap, ThreadToken token) {
  note_tenant(heap);
  heap->tagging = {};
  heap->token.store(token);
  restore_free_lists(heap);
  recount_outgoing(heap);
}

}  // namespace rh::abandoned
