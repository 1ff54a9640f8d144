// A slab: a span cut into blocks of one class. These functions keep its books (the conservation law is in
// arena/span.h); which slab is used when is the heap's business. Unless said otherwise the caller holds the owning
// heap's lock.
#pragma once

#include "arena/arena.h"
#include "base/check.h"
#include "slabs/size_class.h"

namespace rh::slab {

inline const size_class::Properties& properties(const Span* slab) {
  return size_class::kProperties[slab->size_class.load()];
}

// The head of the slab that `span`, of kind slab or interior, belongs to.
inline Span* head(Span* span) {
  return span->kind.load() == SpanKind::interior ? span - span->units : span;
}

// Makes a slab of an allocated span, all of its blocks still to be carved.
void start(Span* span, SizeClass size_class, Heap* owner);

// Makes it a plain span again, whatever is still handed out.
void finish(Span* slab);

// Blocks handed out. Another thread than the owner may see too many, never too few.
inline unsigned outstanding(const Span* slab) {
  uint16_t freed = static_cast<uint16_t>(slab->armed.load() - slab->countdown.load_acquire());
  return static_cast<uint16_t>(slab->outstanding.load() - freed);
}

inline unsigned free_blocks(const Span* slab) {
  return properties(slab).capacity - outstanding(slab);
}

// The count never reaches 0 from here: a slab holds far fewer blocks than the counter has values.
inline constexpr unsigned kNever = 0;

// By the owner: books the local frees since the last arming, and asks to be called after `frees` more.
void arm(Span* slab, unsigned frees);

// By another than the owner, who alone may arm: sends the owner's next free the long way, where it arms again.
void leave(Span* slab);

inline bool is_left(const Span* slab) { return slab->owner.load() != owner_of(slab); }

inline void rejoin(Span* slab) {
  if (is_left(slab)) slab->owner.store(owner_of(slab));
}

// What was asked for of a block, where that is kept; else its usable size.
RH_INLINE size_t requested_size(const Span* slab, const void* block) {
  if constexpr (!kExactSizes) return properties(slab).size;
  return g_realm.sizes().noted(block, slab->size_class.load() == 0);
}

// Keeps that a block is in nobody's hands in the place of its size, where sizes are kept: until it is handed out again
// whoever asks finds that out. Frees that take the shortest way leave no note.
RH_INLINE void note_free(const Span* slab, const void* block) {
  if constexpr (kExactSizes) g_realm.sizes().note_free(block, slab->size_class.load() == 0);
}

// Whether a block that was made begins at `offset` from the slab's start.
RH_INLINE bool is_block(const Span* slab, size_t offset) {
  size_class::Position position = size_class::position(slab->size_class.load(), offset);
  return RH_LIKELY(position.is_start && position.index < slab->carved.load());
}

RH_INLINE bool is_noted_free(const Span* slab, const void* block) {
  return kExactSizes && g_realm.sizes().is_noted_free(block, slab->size_class.load() == 0);
}

// Whether `pointer`, which is `offset` bytes from the slab's start, is the start of a block in somebody's hands, as far
// as the notes tell.
RH_INLINE bool is_live(const Span* slab, const void* pointer, size_t offset) {
  if (RH_UNLIKELY(!is_block(slab, offset))) return false;
  return !kExactSizes || !g_realm.sizes().is_noted_free(pointer, slab->size_class.load() == 0);
}

// The end of a slab's lists, its own successor: as many steps as there should be members are safe in a list that ends
// too soon. Nobody can write to it: a bin that was led into such a list hands it out at last.
extern const Block g_end;
inline Block* list_end() { return const_cast<Block*>(&g_end); }

// The same of lists that are on their way: a local list which leads there is broken, and can be followed.
extern const Block g_batch_end;
inline Block* batch_end() { return const_cast<Block*>(&g_batch_end); }

// Whether the conservation law holds (arena/span.h).
bool is_balanced(const Span* slab);

// Ends the process when the blocks that are free are not as many as were freed, or not blocks: one was freed twice, or a
// pointer into one was.
void check_lists(Span* slab);

struct Taken {
  Block* blocks;  // null when the slab has none
  bool zero;      // reads as zero but for the links
};

// By the owner: hands out the blocks freed locally, or those freed by others, or newly carved ones. The slab, which must
// not be left, is armed with kNever.
Taken take(Span* slab);

// The same, of newly carved ones only: `most`, or about a page.
inline constexpr unsigned kAll = ~0u;
Taken carve(Span* slab, unsigned most = kAll);

// By the owner: how many blocks it still has of those it took. Ends the process when that is more than were handed out:
// one was freed twice.
unsigned count_taken(const Span* slab, const Block* first);

// Books `count` blocks freed by other threads, linked from `first` to `last`.
void give_back(Span* slab, Block* first, Block* last, unsigned count);

// The same of what was taken and not handed out.
void give_back_bin(Span* slab, Block* first);

// Returns to the OS what a warm slab has not carved, where the OS can give it back as zeros.
void clear_uncarved(Span* slab);

// The list of free blocks was put back to an earlier one, in a fork's child: counts what is linked.
void recount(Span* slab);

// The fast path of free, by the owner without the lock. True when the count it asked for is reached.
// The count is written last: who sees it, sees the block as free and the list complete.
RH_INLINE bool free_local(Span* slab, Block* block) {
  block->next = slab->free;
  // A fork may note the list at any moment.
  std::atomic_signal_fence(std::memory_order_release);
  slab->free = block;
  return RH_UNLIKELY(slab->countdown.decrement() == 0);
}

}  // namespace rh::slab
