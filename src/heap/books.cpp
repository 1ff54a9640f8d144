#include "heap/books.h"

namespace rh::books {

namespace {

// Of long lists the first are looked at.
constexpr unsigned kMostLookedAt = 32;

void check_slab(const Heap* heap, const Span* slab, SizeClass size_class) {
  RH_CHECK(slab->kind.load() == SpanKind::slab);
  RH_CHECK(owner_of(slab) == heap);
  RH_CHECK(slab::class_of(slab) == size_class);
  RH_CHECK(slab::is_balanced(slab));
}

}  // namespace

void check_class(const Heap* heap, SizeClass size_class) {
  if (inconsistent()) return;
  const Span* current = heap->current[size_class];
  if (current != nullptr) check_slab(heap, current, size_class);
  RH_CHECK(current == nullptr || current->state == SlabState::current);
  unsigned count = 0;
  const Span* slab = heap->available[size_class].first();
  for (; slab != nullptr && count < kMostLookedAt; slab = slab->next, ++count) {
    check_slab(heap, slab, size_class);
    RH_CHECK(slab->state == SlabState::available || slab->state == SlabState::sparse);
  }
}

void check(const Heap* heap) {
  if (inconsistent()) return;
  for (size_t index = 0; index < size_class::kCount; ++index) check_class(heap, static_cast<SizeClass>(index));
  RH_CHECK(heap->store.is_valid());
}

void check_outgoing(const Outgoing& out) {
  RH_CHECK(out.slab != nullptr && !out.empty() && out.last != kNoPosition);
  RH_CHECK(out.count != 0 && out.count <= slab::capacity(out.slab));
  RH_CHECK(slab::head(g_realm.span_of(slab::block_at(out.slab, out.first))) == out.slab);
  RH_CHECK(slab::head(g_realm.span_of(slab::block_at(out.slab, out.last))) == out.slab);
}

}  // namespace rh::books
