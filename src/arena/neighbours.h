// Free spans that lie side by side.
#pragma once

#include "arena/realm.h"

namespace rh {

inline SpanKind kind_of(const Span* span) { return span->kind.load(); }

// The head of what lies before a span, if that is free.
inline Span* head_before(Span* span) {
  Span* before = span - 1;
  return kind_of(before) == SpanKind::free_tail ? before - before->units : before;
}

// Whether a free span can become one with another that is of `kind`, or becomes so.
inline bool is_alike(const Span* neighbour, const Span* span, SpanKind kind) {
  if (kind_of(neighbour) != kind || partition_of(neighbour) != partition_of(span)) return false;
  return kind != SpanKind::free_dirty || neighbour->node == span->node;
}

}  // namespace rh
