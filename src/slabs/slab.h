// A slab: a span divided into blocks of one class. These functions do its bookkeeping (the conservation law is in
// arena/span.h); the heap decides which slab is used when. Unless noted otherwise the caller holds the owning heap's
// lock.
#pragma once

#include "arena/arena.h"
#include "arena/bars.h"
#include "base/check.h"
#include "base/select.h"
#include "slabs/size_class.h"

namespace rh::slab {

inline const size_class::Properties& properties(const Span* slab) { return size_class::kProperties[slab->bin.load()]; }

inline SizeClass class_of(const Span* slab) { return size_class::class_of_bin(slab->bin.load()); }

// Whether its blocks are of the smallest class; where sizes are recorded, in which that has one bin.
RH_INLINE bool is_smallest(const Span* slab) { return slab->bin.load() == 0; }

// The head of the slab that `span`, of kind slab or interior, belongs to.
inline Span* head(Span* span) { return span->kind.load() == SpanKind::interior ? span - span->units : span; }

// Turns an allocated span into a slab, with all of its blocks still to be carved. No slab that began there before had
// the same number.
void start(Span* span, SizeClass size_class, Heap* owner, uint32_t number);

// Turns it back into a plain span, whatever is still handed out.
void finish(Span* slab);

inline void add(Word<uint16_t>& word, unsigned amount) { word.store(static_cast<uint16_t>(word.load() + amount)); }

inline void add(uint16_t& word, unsigned amount) { word = static_cast<uint16_t>(word + amount); }

inline void add_returned(Span* slab, unsigned amount) {
  static_assert(kUnitSize / kBlockAlign <= ReturnedAndPartition::kMostReturned, "no slab has more blocks than that");
  slab->others.set_returned(slab->others.returned() + amount);
}

// Armed with this, what the owner frees into the slab is not counted, and goes into the owner's bin: so while the bin
// holds the slab's blocks, and the class is no longer seldom used. From kNever the count does not reach 0: a slab holds
// far fewer blocks.
inline constexpr uint16_t kUncounted = 0, kNever = INT16_MAX;

// Whether what the owner frees goes into the bin while that holds the slab's blocks. A block in there keeps its slab
// from being empty: long ones would keep much from going back while the owner sleeps.
inline bool is_binned(const Span* slab) { return properties(slab).size <= size_class::kMostBinned; }

// What the slab is armed with when its blocks are taken.
inline uint16_t at_taking(const Span* slab) { return is_binned(slab) ? kUncounted : kNever; }

// How many blocks it has room for. In hardened builds its end is no block's: a page where there is a bar, else what
// reaches out of a block by a little, in either direction, comes to without harm, and which never has a tag.
inline unsigned capacity(const Span* slab) {
  size_t end = 0;
  if constexpr (kHardened) end = bars::is_place(slab, slab->units) ? kSlabGuard : kBlockAlign;
  return size_class::position(slab->bin.load(), Units{slab->units}.bytes() - end).index;
}

// Local frees since the last arming.
inline uint16_t unsettled(const Span* slab) {
  uint16_t armed = slab->armed.load(), left = slab->countdown.load_acquire();
  return armed == kUncounted ? uint16_t{0} : static_cast<uint16_t>(armed - left);
}

// Blocks handed out. A thread other than the owner may see too many, never too few.
inline unsigned outstanding(const Span* slab) {
  return static_cast<uint16_t>(slab->outstanding.load() - unsettled(slab));
}

// For who looks without the lock: never more than there are, also in the middle of a change.
inline unsigned outstanding_at_most_all(const Span* slab) {
  const unsigned seen = outstanding(slab), all = capacity(slab);
  return seen < all ? seen : all;
}

inline unsigned free_blocks(const Span* slab) { return capacity(slab) - outstanding(slab); }

// Called by the owner: books the local frees since the last arming, and has the owner look again after `frees` more.
void arm(Span* slab, unsigned frees);

// Called by a thread other than the owner, who alone may arm: sends the owner's next free down the slow path, where it
// arms again.
void leave(Span* slab);

inline bool is_left(const Span* slab) { return has_note(slab->owner.load(), kLeft); }

inline void rejoin(Span* slab) {
  if (is_left(slab)) slab->owner.store_release(without_note(slab->owner.load(), kLeft));
}

// The requested size of a block where that is recorded, else its usable size.
RH_INLINE size_t requested_size(const Span* slab, const void* block) {
  if constexpr (!kExactSizes) return properties(slab).size;
  return g_realm.sizes().noted(block, is_smallest(slab));
}

// Where sizes are recorded, notes in place of the size that nobody holds this block, until it is handed out again.
// Frees on the fastest path leave no note.
RH_INLINE void note_free(const Span* slab, const void* block) {
  if constexpr (kExactSizes) g_realm.sizes().note_free(block, is_smallest(slab));
}

// Whether a carved block begins at `offset` from the slab's start.
RH_INLINE bool is_block(const Span* slab, size_t offset) {
  size_class::Position position = size_class::position(slab->bin.load(), offset);
  return RH_LIKELY(position.is_start && position.index < slab->carved.load());
}

RH_INLINE bool is_noted_free(const Span* slab, const void* block) {
  return kExactSizes && g_realm.sizes().is_noted_free(block, is_smallest(slab));
}

// Whether `pointer`, `offset` bytes from the slab's start, is the start of a block that somebody holds, as far as the
// notes show.
RH_INLINE bool is_live(const Span* slab, const void* pointer, size_t offset) {
  if (RH_UNLIKELY(!is_block(slab, offset))) return false;
  return !kExactSizes || !g_realm.sizes().is_noted_free(pointer, is_smallest(slab));
}

inline Block* block_at(const Span* slab, BlockPosition position) {
  return reinterpret_cast<Block*>(g_realm.address(slab) + position * kBlockAlign);
}
inline BlockPosition position_of(const Span* slab, const Block* block) {
  return static_cast<BlockPosition>((address_of(block) - g_realm.address(slab)) / kBlockAlign);
}
static_assert(size_class::kMostUnits.bytes() / kBlockAlign <= kNoPosition);

// What others have freed.
inline Block* returned(const Span* slab) {
  BlockPosition first = slab->freed.returned;
  return first == kNoPosition ? nullptr : block_at(slab, first);
}
inline void set_returned(Span* slab, const Block* first) {
  slab->freed.returned = first == nullptr ? kNoPosition : position_of(slab, first);
}

// What the second word of a free block says. It means something nowhere but in that block, while the slab lives, and is
// cleared when the block is handed out: so a program comes to it by reading free memory alone. What a block of an
// earlier slab left there, and a program has carried about with its own content, says another number. It looks like no
// address. (glibc marks the blocks that its threads keep in a similar way.)
RH_INLINE uint64_t mark_of(const Span* slab, const Block* block) {
  uint64_t number = slab->stamp;
  return ((k64Bit ? number : number << 32) - address_of(block)) ^ secret(Secret::marks);
}

RH_INLINE bool is_marked(const Span* slab, const Block* block) { return block->mark == mark_of(slab, block); }

// Ends the process: the block is free.
[[noreturn]] RH_COLD void fail_twice(const Span* slab, const Block* block);

// Ends the process: a block was written to while it was free.
[[noreturn]] RH_COLD void fail_written(const Block* block);

// The slab of a block that is about to be handed out, in a list of blocks of one slab; in hardened builds alone, others
// give null. Ends the process when what the block says of itself is not what was written there.
RH_INLINE Span* of_unwritten(const Block* block) {
  if constexpr (!kHardened) return nullptr;
  Span* slab = head(g_realm.span_of(block));
  // Where the list leads to another unit it is looked up; what lies there says itself that it is free, in its turn.
  uintptr_t next = address_of(block->next);
  bool leads_on = ((next ^ address_of(block)) & ~(kUnitSize - kBlockAlign)) == 0 || next == 0;
  if (RH_UNLIKELY(!leads_on)) {
    size_t offset = next - g_realm.address(slab);
    leads_on = offset < Units{slab->units}.bytes() && offset % kBlockAlign == 0;
  }
  if (RH_UNLIKELY(!leads_on || !is_marked(slab, block))) fail_written(block);
  return slab;
}

// The same of a block in its slab's first unit whose list goes on there, or ends; null where there is more to it.
RH_INLINE Span* of_unwritten_near(const Block* block) {
  Span* slab = g_realm.span_of(block);
  uintptr_t next = address_of(block->next);
  bool is_near = ((next ^ address_of(block)) & ~(kUnitSize - kBlockAlign)) == 0 || next == 0;
  return RH_LIKELY(is_near && slab->kind.load() == SpanKind::slab && is_marked(slab, block)) ? slab : nullptr;
}

// Marks a block as free, which it must not be.
RH_INLINE void mark_free(const Span* slab, Block* block) {
  uint64_t mark = mark_of(slab, block);
  if (RH_UNLIKELY(block->mark == mark)) fail_twice(slab, block);
  block->mark = mark;
}

// Whether the conservation law holds (arena/span.h).
bool is_balanced(const Span* slab);

// Ends the process: of a free, what was found later.
[[noreturn]] RH_COLD void fail_broken(const Span* slab, const char* what);

struct Taken {
  Block* blocks;       // null when the slab has none
  bool zero;           // reads as zero except for the links
  uint16_t count = 0;  // how many; 0: it is not known

  explicit operator bool() const { return blocks != nullptr; }
};

// Called by the owner: hands out the blocks freed locally, or those freed by others, or about two pages of newly carved
// ones, or those of a hole. The slab, which must not be left, is armed anew.
Taken take(Span* slab);

// The same, with newly carved blocks only: `most`, or about a page, with which a class begins.
inline constexpr unsigned kAll = ~0u;
Taken carve(Span* slab, unsigned most = kAll);

// Called by the owner: how many of the blocks it took it still has, and which is the last of them. Ends the process
// when that is more than were handed out: one was freed twice.
unsigned count_taken(const Span* slab, Block* first, Block** last = nullptr);

// Called by the owner: what it has freed joins what others have returned, where any thread that holds the lock may take
// it out again.
void share(Span* slab);

// Books `count` blocks freed by other threads, linked from `first` to `last`.
void give_back(Span* slab, Block* first, Block* last, unsigned count);

// The same for blocks that were taken and not handed out.
void give_back_bin(Span* slab, Block* first);

// Returns to the OS the part of a dirty slab that is not carved, where the OS can replace it by zeros.
void clear_uncarved(Span* slab);

// Recounts the free list after it was restored to an earlier state, in a fork's child.
void recount(Span* slab);

// ---- holes (holes.cpp) --------------------------------------------------------------------------
//
// Pages of a slab that went back to the OS while other blocks of it are in use. A block that lies in a hole, or partly,
// is hollow: free, and in no list until the hole is filled. Which these are follows from the holes alone.

// Not where a page is about as long as a slab.
inline bool may_have_holes() { return platform::kReplacesByZeros && platform::page_size() == platform::kPageSize; }

// Returns to the OS the pages that hold nothing but free blocks, where it can replace them by zeros; gives how many
// bytes. Any thread may call this while the owner frees: what the owner freed last stays, with its page.
size_t punch(Span* slab);

// Called by the owner: hands out the blocks of a page of a hole. Ends the process when one of them was written to
// meanwhile.
Taken fill_hole(Span* slab);

unsigned hollow_blocks(const Span* slab);

// Some of a slab's carved blocks, by their number.
class BlockSet {
 public:
  static constexpr size_t kMost = kUnitSize / kBlockAlign;

  bool has(unsigned index) const { return words_[index / 64] >> (index % 64) & 1; }

  // False when it is in already.
  bool add(unsigned index) {
    if (has(index)) return false;
    words_[index / 64] |= uint64_t{1} << (index % 64);
    return true;
  }

 private:
  uint64_t words_[kMost / 64] = {};
};

// Those that nobody holds: hollow, or in a list of the slab's, or in one of two bins, which may be null or another
// slab's. For who may follow all of these: the owner or, of a heap that no thread owns, who holds its lock; and nothing
// may wait in its inbox.
BlockSet free_blocks_of(const Span* slab, const Block* bin, const Block* other_bin);

inline bool has_holes(const Span* slab) {
  for (uint32_t unit = 0; unit < slab->units; ++unit)
    if (slab[unit].holes != 0) return true;
  return false;
}

// ---- the fast path ------------------------------------------------------------------------------

// Whether a block starts there, of an address in the slab's first unit; it need not be carved yet.
RH_INLINE bool starts_block(const Span* slab, const void* pointer) {
  return static_cast<uint32_t>(address_of(pointer) % kUnitSize) * slab->freed.portion < slab->freed.portion;
}

// Whether one does that was carved.
RH_INLINE bool starts_carved(const Span* slab, const void* pointer) {
  uint64_t product = uint64_t{address_of(pointer) % kUnitSize} * slab->freed.portion;
  return static_cast<uint32_t>(product) < slab->freed.portion && product >> 32 < slab->carved.load();
}

// The fast path of free, called by the owner without the lock. True when the owner is to look at the slab: the armed
// count is reached, or many frees went into the bin. The count is written last: a thread that sees it also sees the
// block as free and the list complete.
//
// What was freed last is allocated next as long as it goes into the bin: its lines are in the cache. `link_local` is
// the same of a block that is marked as free already.
RH_INLINE bool link_local(Span* slab, Block* block, Block** bin) {
  static_assert(kUncounted == 0);
  Block** list = select(slab->armed.load(), bin, &slab->free);
  if constexpr (platform::kThreadsAreTerminated) ++slab->freed.begun;
  block->next = *list;
  // A fork may record the list at any moment.
  std::atomic_signal_fence(std::memory_order_release);
  schedule_point();
  *list = block;
  return RH_UNLIKELY(slab->countdown.decrement() == 0);
}

RH_INLINE bool free_local(Span* slab, Block* block, Block** bin) {
  mark_free(slab, block);
  return link_local(slab, block, bin);
}

}  // namespace rh::slab
