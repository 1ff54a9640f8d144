// Which block a pointer means, for everyone but the fast paths, which know without asking.
#pragma once

#include "heap/guards.h"
#include "heap/large.h"
#include "slabs/slab.h"

namespace rh {

enum class BlockKind : uint8_t { small, large, guarded };

struct BlockAt {
  const void* pointer;
  Span* span;      // of the slab or large block that the pointer lies in, or its place; null: in no block
  BlockKind kind;  // asked once: it may be freed meanwhile, by whoever has no right to

  bool is_small() const { return kind == BlockKind::small; }
  bool is_large() const { return kind == BlockKind::large; }
  bool is_guarded() const { return kind == BlockKind::guarded; }

  RH_INLINE size_t offset() const { return address_of(pointer) - g_realm.address(span); }

  // Of the block that the pointer lies in.
  void* start() const {
    if (is_guarded()) return guards::start_of(span);
    size_t behind = is_large() ? offset() : offset() % slab::properties(span).size;
    return reinterpret_cast<void*>(address_of(pointer) - behind);
  }

  // Whether a block that was made starts there.
  RH_INLINE bool is_start() const {
    if (span == nullptr) return false;
    if (is_small()) return slab::is_block(span, offset());
    return is_large() ? offset() == 0 : pointer == guards::start_of(span);
  }

  // Whether it is a block that says itself that it is free.
  bool is_marked() const {
    if (is_guarded()) return !guards::is_live(span);
    return is_small() && is_start() && slab::is_marked(span, static_cast<const Block*>(pointer));
  }

  // Whether it is in somebody's hands too. A block of a thread's heap that was freed without a note looks as if it
  // were.
  bool is_live() const {
    if (!is_start()) return false;
    return is_small() ? !slab::is_noted_free(span, pointer) : is_large() || guards::is_live(span);
  }

  size_t usable_size() const {
    if (is_guarded()) return guards::size_of(span);
    return is_large() ? Units{span->units}.bytes() : slab::properties(span).size;
  }

  // What was asked for, with kExactSizes; else the usable size.
  size_t requested_size() const {
    if (!kExactSizes || is_guarded()) return usable_size();
    return is_large() ? span->requested : slab::requested_size(span, pointer);
  }
};

// The span of the large block that the pointer lies in, further on than its first unit; else null. Takes longer the
// further on it lies.
Span* find_within_large(const void* pointer);

RH_INLINE BlockAt find_block(const void* pointer) {
  Span* span = g_realm.find(pointer);
  SpanKind kind = span != nullptr ? span->kind.load() : SpanKind::none;
  if (kind == SpanKind::slab) return {pointer, span, BlockKind::small};
  if (kind == SpanKind::interior) return {pointer, span - span->units, BlockKind::small};
  if (RH_UNLIKELY(kind == SpanKind::guarded)) return {pointer, span, BlockKind::guarded};
  return {pointer, kind == SpanKind::large ? span : find_within_large(pointer), BlockKind::large};
}

// Whether the address is ours.
bool in_realm(const void* pointer);

// Ends the process: `function` was called with what is not the start of a live block.
[[noreturn]] void fail_invalid(const char* function, const void* pointer);

// For pointers in the realm: ends the process when they are not the start of a live block, as far as can be told.
inline BlockAt known_block(const void* pointer, const char* function) {
  BlockAt at = find_block(pointer);
  bool can_be = at.span != nullptr && (at.is_small() || at.is_start()) && !at.is_marked();
  if (RH_UNLIKELY(!can_be)) fail_invalid(function, pointer);
  return at;
}

}  // namespace rh
