#include "heap/stats.h"

#include "heap/large.h"
#include "heap/registry.h"
#include "heap/sparse.h"

namespace rh::stats {

namespace {

void add_slab(Figures* figures, const Span* slab) {
  const size_class::Properties& own = slab::properties(slab);
  ClassFigures& of_class = figures->classes[slab->size_class.load()];
  unsigned outstanding = slab::outstanding(slab);
  if (outstanding > own.capacity) outstanding = own.capacity;  // caught in mid-change
  of_class.slabs += 1;
  of_class.blocks += own.capacity;
  of_class.in_use += outstanding;
  figures->in_use += outstanding * size_t{own.size};
}

// Some of the spans from `span` on, under the arena's lock; gives where to go on. What becomes part of a longer span
// before that is not counted.
Span* add_some_spans(Figures* figures, Span* span) {
  constexpr size_t kAtOnce = 512;
  LockGuard guard(g_arena.lock());
  Realm::Run run = g_realm.run_from(span);
  if (run.empty()) return nullptr;
  span = run.first;
  for (size_t looked_at = 0; span < run.end && looked_at < kAtOnce; ++span, ++looked_at) {
    SpanKind kind = span->kind.load_acquire();
    if (kind == SpanKind::slab) add_slab(figures, span);
    if (kind == SpanKind::large && !large::is_delayed(span)) {
      figures->large_blocks += 1;
      figures->large_bytes += Units{span->units}.bytes();
    }
    bool whole = kind == SpanKind::slab || kind == SpanKind::large || is_free(kind);
    if (whole && span->units > 1) span += span->units - 1;
  }
  return span;
}

// Others allocate meanwhile: nobody waits for the whole walk.
void add_spans(Figures* figures) {
  Span* span = g_realm.first();
  while (span != nullptr) span = add_some_spans(figures, span);
  figures->in_use += figures->large_bytes;
}

void add_heap(Figures* figures, const Heap* heap) {
  figures->heaps += 1;
  figures->refills += heap->refills.value();
  figures->slabs_taken += heap->slabs_taken.value();
  figures->marks += heap->marks.value();
  figures->remote_frees += heap->remote_frees.value();
  figures->remote_batches += heap->remote_batches.value();
}

}  // namespace

void gather(Figures* figures) {
  *figures = {};
  {
    LockGuard guard(g_arena.lock());
    figures->reserved = g_realm.reserved();
    figures->arena = g_arena.figures();
    figures->metadata = registry::metadata_bytes() + g_realm.side_tables();
  }
  figures->arena.returned += sparse::returned();
  add_spans(figures);
  figures->guards = guards::figures();
  figures->in_use += figures->guards.bytes;
  for (Heap* heap = registry::threads(); heap != nullptr; heap = heap->next) add_heap(figures, heap);
}

}  // namespace rh::stats
