// Blocks with a span of their own.
#pragma once

#include "heap/types.h"

namespace rh {

// How closely a block that is resized in place must fit; `loose` also keeps one that would leave much unused.
enum class Fit : uint8_t { close, loose };

namespace large {

inline bool is_delayed(const Span* span) { return kHardened && has_note(span->owner.load(), kDelayed); }

// Whether any memory at all could hold so much.
inline bool is_possible(size_t size) { return size <= kMaxRequest && Units::holding(size).count <= UINT32_MAX; }

// The span of a block that no heap lists, from the arena; null when there is no memory.
Span* allocate(size_t size, size_t alignment, Prefer prefer, Partition partition = kUntyped);

// Whether such a block comes from a heap's store.
inline bool is_from_store(size_t size, size_t alignment) {
  return alignment <= kUnitSize && !(Units::holding(size) > SpanStore::kLongest);
}

// The same from the store of `home`, whose lock the caller holds, by `token`. A thread's heap does not list it, but has
// it back when it is freed; a first-class one lists it.
Span* allocate_from(Heap* home, size_t size, ThreadToken token);

// Gives the span of a block that no heap lists back to where it came from.
void free(Span* span);

// The same of one that came from no store and is not committed any more.
void free_uncommitted(Span* span);

// Gives back the span of a block that `owner`, a first-class heap, lists. The caller holds its lock, by `token`.
void free_listed(Heap* owner, Span* span, ThreadToken token);

// Whether its span came from a store, and goes back there.
inline bool has_store(const Span* span) { return without_notes(span->owner.load()) != nullptr; }

// Whether a first-class heap lists it.
inline bool has_owner(const Span* span) { return (reinterpret_cast<uintptr_t>(span->owner.load()) & kFromStore) == 0; }

// The heap that lists it, of one that has an owner.
inline Heap* lister_of(const Span* span) { return without_notes(span->owner.load()); }

enum class Resized : uint8_t { no, done, memory_freed };
Resized resize_in_place(Span* span, size_t size, Fit fit);

// Whether to copy what stays of a block that is cut to `size`, rather than to cut it in its place.
bool is_better_copied(const Span* span, size_t size);

// Whether moving the block's pages to a longer span may be worth more than copying, and possible.
bool may_move(const Span* span, size_t size);

// The span to move them to; null when there is no memory. `*lent` is for move().
Span* allocate_to_move(const Span* span, size_t size, Units* lent);

// Moves them to `target` and frees the span, which no heap lists. False when the OS does not; then `target` is gone.
bool move(Span* span, Span* target, Units lent);

// The program changes what pages are that it holds, or some of them: how they are protected, whether they are locked,
// what is mapped there, what forked children have of them. That ends with the block.
void note_altered(const void* pages, size_t size);

// The head of the large block that a unit lies in, or null. Not a slab's unit.
Span* head_of(Span* unit);

// Which memory to take for a block of `size` bytes that is to read as zero: for all but the largest, clearing warm
// memory is cheaper than faulting in what the OS has cleared, and what is warm and passed over would only go back to
// the OS.
Prefer preferred_for_zero(size_t size);

// Makes the memory of an allocated span read as zero.
void clear(Span* span, size_t size);

}  // namespace large
}  // namespace rh
