#include "heap/stats.h"

#include "heap/large.h"
#include "heap/regions.h"
#include "heap/registry.h"
#include "heap/sparse.h"

namespace rh::stats {

namespace {

TagFigures& of_tag(ByTag& by_tag, const Span* span) {
  const Heap* owner = without_notes(span->owner.load_acquire());
  return by_tag[owner != nullptr ? owner->tag : tags::kUntagged];
}

void add(TagFigures& figures, Units held, size_t in_use, size_t blocks) {
  figures.held += held.bytes();
  figures.in_use += in_use;
  figures.blocks += blocks;
}

void add_slab(Figures* figures, ByTag* by_tag, const Span* slab) {
  const size_class::Properties& own = slab::properties(slab);
  ClassFigures& of_class = figures->classes[slab::class_of(slab)];
  const unsigned outstanding = slab::outstanding_at_most_all(slab);
  of_class.slabs += 1;
  of_class.blocks += slab::capacity(slab);
  of_class.in_use += outstanding;
  figures->in_use += outstanding * size_t{own.size};
  if (by_tag != nullptr) add(of_tag(*by_tag, slab), Units{slab->units}, outstanding * size_t{own.size}, outstanding);
}

void add_large(Figures* figures, ByTag* by_tag, const Span* span) {
  const Units units{span->units};
  figures->large_blocks += 1;
  figures->large_bytes += units.bytes();
  if (by_tag != nullptr) add(of_tag(*by_tag, span), units, units.bytes(), 1);
}

// Some of the spans from `span` on, under the arena's lock; gives where to go on. What becomes part of a longer span
// before that is not counted.
Span* add_some_spans(Figures* figures, ByTag* by_tag, Span* span) {
  constexpr size_t kAtOnce = 512;
  LockGuard guard(g_arena.lock());
  Realm::Run run = g_realm.run_from(span);
  if (run.empty()) return nullptr;
  span = run.first;
  for (size_t looked_at = 0; span < run.end && looked_at < kAtOnce; ++span, ++looked_at) {
    SpanKind kind = span->kind.load_acquire();
    if (kind == SpanKind::slab) add_slab(figures, by_tag, span);
    if (kind == SpanKind::large && !large::is_delayed(span)) add_large(figures, by_tag, span);
    bool whole = kind == SpanKind::slab || kind == SpanKind::large || is_free(kind);
    if (whole && span->units > 1) span += span->units - 1;
  }
  return span;
}

// Others allocate meanwhile: nobody waits for the whole walk.
void add_spans(Figures* figures, ByTag* by_tag) {
  Span* span = g_realm.first();
  while (span != nullptr) span = add_some_spans(figures, by_tag, span);
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

// What lies near a program's code. The blocks there are in no slab nor span, and not counted.
void add_regions(Figures* figures) {
  const regions::Figures ranges = regions::figures();
  figures->reserved += ranges.reserved;
  figures->arena.committed += ranges.committed;
  if (figures->arena.committed_peak < figures->arena.committed)
    figures->arena.committed_peak = figures->arena.committed;
}

}  // namespace

OwnHeaps own_heaps() {
  const regions::Figures ranges = regions::figures();
  OwnHeaps own = {ranges.count, ranges.held};
  LockGuard guard(registry::lock());
  for (const Heap* heap = registry::shared_heaps(); heap != nullptr; heap = heap->next) {
    if (registry::is_spare(heap) || !is_first_class(heap) || heap->sampled) continue;
    own.count += 1;
    own.held += heap->account.held();
  }
  return own;
}

void gather(Figures* figures, ByTag* by_tag) {
  *figures = {};
  if (by_tag != nullptr) __builtin_memset(by_tag, 0, sizeof(*by_tag));
  {
    LockGuard guard(g_arena.lock());
    figures->reserved = g_realm.reserved();
    figures->arena = g_arena.figures();
    figures->metadata = registry::metadata_bytes() + g_realm.side_tables();
  }
  figures->arena.returned += sparse::returned();
  add_regions(figures);
  add_spans(figures, by_tag);
  figures->guards = guards::figures();
  figures->in_use += figures->guards.bytes;
  if (by_tag != nullptr) add((*by_tag)[tags::kUntagged], {}, figures->guards.bytes, figures->guards.live);
  for (Heap* heap = registry::threads(); heap != nullptr; heap = heap->next) add_heap(figures, heap);
}

}  // namespace rh::stats
