// Which block a pointer means, for everyone but the fast paths, which know without asking.
#pragma once

#include "heap/large.h"
#include "slabs/slab.h"

namespace rh {

struct BlockAt {
  const void* pointer;
  Span* span;     // of the slab or large block that the pointer lies in; null: in no block
  bool is_large;  // asked once: it may be freed meanwhile, by whoever has no right to

  RH_INLINE size_t offset() const { return address_of(pointer) - g_realm.address(span); }

  // Of the block that the pointer lies in.
  void* start() const {
    size_t behind = is_large ? offset() : offset() % slab::properties(span).size;
    return reinterpret_cast<void*>(address_of(pointer) - behind);
  }

  // Whether a block that was made starts there.
  RH_INLINE bool is_start() const {
    if (span == nullptr) return false;
    return is_large ? offset() == 0 : slab::is_block(span, offset());
  }

  // Whether it is a small block that says itself that it is free.
  bool is_marked() const { return is_start() && slab::is_marked(span, static_cast<const Block*>(pointer)); }

  // Whether it is in somebody's hands too. A block of a thread's heap that was freed without a note looks as if it
  // were.
  bool is_live() const { return is_start() && (is_large || !slab::is_noted_free(span, pointer)); }

  size_t usable_size() const { return is_large ? Units{span->units}.bytes() : slab::properties(span).size; }

  // What was asked for, with kExactSizes; else the usable size.
  size_t requested_size() const {
    if (!kExactSizes) return usable_size();
    return is_large ? span->requested : slab::requested_size(span, pointer);
  }
};

// The span of the large block that the pointer lies in, further on than its first unit; else null. Takes longer the
// further on it lies.
Span* find_within_large(const void* pointer);

RH_INLINE BlockAt find_block(const void* pointer) {
  Span* span = g_realm.find(pointer);
  SpanKind kind = span != nullptr ? span->kind.load() : SpanKind::none;
  if (kind == SpanKind::slab) return {pointer, span, false};
  if (kind == SpanKind::interior) return {pointer, span - span->units, false};
  return {pointer, kind == SpanKind::large ? span : find_within_large(pointer), true};
}

// Whether the address is ours.
bool in_realm(const void* pointer);

// Ends the process: `function` was called with what is not the start of a live block.
[[noreturn]] void fail_invalid(const char* function, const void* pointer);

// For pointers in the realm: ends the process when they are not the start of a live block, as far as can be told.
inline BlockAt known_block(const void* pointer, const char* function) {
  BlockAt at = find_block(pointer);
  bool can_be = at.span != nullptr && (at.is_large ? at.offset() == 0 : !at.is_marked());
  if (RH_UNLIKELY(!can_be)) fail_invalid(function, pointer);
  return at;
}

}  // namespace rh
