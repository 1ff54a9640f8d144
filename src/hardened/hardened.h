// The heap as hardened builds hand it out (docs/design/hardened.md): the layer below, with blocks that say when they
// were misused. Each function is the one of its name in heap/heap.h, with what it needs to know beyond that.
//
//   malloc  room for a tail → the heap's block, unwritten since it was free → zeros, and a tail behind them
//   free    a live block, freed by who may → tail as it was → zeros → kept for a while → an older one to the heap
#pragma once

#include "hardened/tail.h"
#include "heap/heap.h"

namespace rh::hardened {

// Whether a block that new made may not be freed by free, and one of malloc's not by delete.
RH_HIDDEN extern constinit std::atomic<bool> g_strict;

// Null when there is no memory. `alignment` is a power of two from kBlockAlign to kMaxAlignment; `heap` a first-class
// one, or null. Small blocks read as zero; large ones if they are to.
void* allocate(Heap* heap, size_t alignment, size_t size, Maker maker, bool zeroed = false);

// Of any pointer but null. `size` is what the caller says the block has, or kUnknown. Ends the process when it is no
// live block of ours, or one that was misused.
Freed free(void* block, Maker maker, size_t size = kUnknown);

// The size of the block that a request of `size` gets.
size_t good_size(size_t size);

// Whether it is a live block without bytes.
bool is_empty_block(const void* pointer);

// Whether it is the start of a live block, also of one without bytes; and one that nobody has written behind, as far as
// can be told.
bool is_live(const void* pointer);
bool is_intact(const void* pointer);

// The start of the block whose bytes `pointer` lies among. Ends the process when there is none.
void* start_of(const void* pointer, const char* function);

// Whether an address is ours.
bool holds(const void* pointer);

// What its user may use of a live block: what was asked for. Ends the process for anything else; `function` was called.
size_t size_of(const void* block, const char* function);

// Resizes where it lies, or null: then the block must move. Not of one without bytes. `moves`: its pages may be moved;
// `loose`: also where it would fill less than three quarters of its place, so that it can always become shorter.
enum class Resize : uint8_t { moves, stays, stays_loose };
void* resize(void* block, size_t size, Resize how = Resize::moves);

// The first-class heap whose block `pointer` lies in, anywhere; null for any other pointer.
Heap* heap_of(const void* pointer);

// The first-class heap that a copy of a live block is to be in, or null.
Heap* heap_beside(const void* block);

// The partition that a live block's memory is of.
Partition partition_of(const void* block);

// Lets go of what a thread's heap keeps from use; by its owner, who may be so for a moment only.
void flush(Heap* heap);
// What all threads keep, those that have ended too: for a library about to be unloaded, with nobody inside it.
void flush_all();

}  // namespace rh::hardened
