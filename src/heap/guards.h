// A few blocks on pages of their own, with inaccessible memory before and behind them, which is inaccessible as a whole
// once they are freed: what a program does wrong with one of them is seen as it does it, in the thread that does it. At
// one block in some thousands that costs so little that it can stay on for good. (GWP-ASan does this in Chrome and
// Android; docs/design/guards.md.)
//
// A place is a unit. Its last page is never accessible, and what a block does not need of the others is not either:
//
//   ....|guard|  block in its last bytes |guard|block in its first bytes  |guard|....
//
// Half of the blocks end where their place's last page begins, but for what their alignment takes, the others begin
// where it does.
#pragma once

#include "arena/arena.h"
#include "heap/watch.h"

namespace rh::guards {

// The most blocks at a time, and their most bytes: none where a page is as long as a place.
inline constexpr size_t kPlaces = k64Bit ? 256 : 64;
inline constexpr size_t kMostSize = kUnitSize - platform::kPageSize;

// Whether places have pages of their own: not where a page is a unit or longer. There blocks are not guarded.
inline bool are_possible() { return platform::page_size() == platform::kPageSize; }

// One allocation in `every` of each thread, on average; 0: none, as it is at first. May change at any time.
void set_every(uint64_t every);
inline uint64_t every() { return watch::guarded_every(); }

// From now on, once there are any, a thread that accesses such memory as it may not says what it was before it ends. To
// be called when the library is loaded.
void look_at_faults();

// A block, which reads as zero. Null when it is too long, all places are taken, or there is no memory. It belongs to
// `heap`, a program's, unless that is null, but does not count in its account.
void* allocate(size_t alignment, size_t size, bool at_end, Heap* heap);

// Of a span of kind guarded: the block that it has or had last, whose size is what was asked for; null when it never
// had one.
void* start_of(const Span* place);
size_t size_of(const Span* place);
bool is_live(const Span* place);
Heap* heap_of(const Span* place);

// Frees the block. Ends the process when `pointer` is not the start of one that is live, or when the bytes beside it
// were written to.
void free(Span* place, const void* pointer);

// Frees all blocks of the heap.
void free_all(const Heap* heap);

// Ends the process: `function` was called with `pointer`, which lies there and is not the start of a live block.
[[noreturn]] RH_COLD void fail_invalid(const Span* place, const char* function, const void* pointer);

struct Figures {
  size_t made;         // so far
  size_t live, bytes;  // now
};
Figures figures();

// Of one heap of a program's; `made` is 0.
Figures figures_of(const Heap* heap);

}  // namespace rh::guards
