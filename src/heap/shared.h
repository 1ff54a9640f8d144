// First-class heaps: the same heap, its owner's part under the lock as well. That is all that is different: no thread
// owns one, so bins are popped and blocks linked into their slabs under the lock, and nothing waits in an inbox; and a
// heap that can be destroyed keeps a list of all that it has.
//
// A bound one has an owner too: the thread that owns the heap `home`, as long as `tenant` is the same in both. It takes
// and frees as from its own; others send what they free to the inbox. When the thread has ended, the next that wants to
// allocate becomes the owner.
#pragma once

#include "heap/types.h"

namespace rh::shared {

Heap* create();

// Bound to the thread whose own heap is given, the calling one.
Heap* create_bound(Heap* own);

// Binds a bound heap to the calling thread, whose own is given; ends the process while the thread it is bound to lives.
void take_up(Heap* heap, Heap* own);

// The same, but for the end: false, and nothing done, while that thread lives, and where nothing is certain.
bool take_up_if_left(Heap* heap, Heap* own);

// Whether the heap is bound to a thread that has ended: then nobody owns it any more. The caller holds heap.lock, by
// `token`.
bool disown_if_left(Heap* heap, ThreadToken token);

// What a program knows of a heap: its address, and its life beside it. find gives null for what is no heap's, or was.
uintptr_t handle_of(const Heap* heap);
inline Heap* find(uintptr_t handle) {
  size_t life = handle % platform::kPageSize;
  Heap* heap = reinterpret_cast<Heap*>(handle - life);
  return life != 0 && heap != nullptr && heap->life == life ? heap : nullptr;
}

// Gives back all slabs and large blocks of the heap, and the heap. Callers above this layer: destroy_heap.
void destroy(Heap* heap);

// The same, but for the heap. Callers above this layer: reset_heap.
void reset(Heap* heap);

// Gives back what is empty.
void trim(Heap* heap);

// The same for a caller that holds heap.lock, by `token`.
void give_back_empty(Heap* heap, ThreadToken token);

// Walks the live blocks in the order of their addresses: the first behind `block`, which may have been freed since, or
// of all when that is null; null when there are no more. With kExactSizes only.
void* next_block(Heap* heap, const void* block);

// The blocks in use, in the order of their addresses, a few at a time: all that are from before the first step until
// after the last. False, and nothing done, when the heap is bound to another thread, which lives.
struct InUse {
  void* block;
  size_t size;  // usable
};
struct Walk {
  static constexpr size_t kAtOnce = 64;
  Span* span = nullptr;  // where to go on
  uintptr_t from = 0;
  InUse found[kAtOnce] = {};
  size_t count = 0;  // none: there are no more
};
bool walk_on(Heap* heap, Walk* walk);

// Many small blocks with few holds of the lock. Gives how many: fewer where memory or a limit is in the way, none of a
// heap that is bound to another thread, living or not.
size_t take_many(Heap* heap, SizeClass size_class, void** blocks, size_t count);

// A block; none when there is no memory.
slab::Taken take(Heap* heap, SizeClass size_class);

// A block of this heap's, freed by any thread.
void free(Heap* heap, Span* slab, Block* block);

// A large block that is not from the heap's store joins its list, and its account. False, and it does not, when a limit
// does not allow it.
bool list_large(Heap* heap, Span* span);

// The same without the account: it leaves the list, and is as one that is not from a store; and is back there.
void unlist_large(Span* span);
void relist_large(Heap* heap, Span* span);

// A large block in a heap's list, freed by any thread.
void free_large(Span* span);

// What a program's heap has in blocks; those in its bins, and in what is on the way there, count, and those on guarded
// pages.
struct Figures {
  size_t in_use, blocks;
};
Figures figures(Heap* heap);

// The heap of a program's that a slab, a large block or a guarded place belongs to, or null.
Heap* heap_of(const Span* span);

// The same for a copy of a block in there: null also when the heap is bound to another thread.
Heap* heap_beside(const Span* span);

}  // namespace rh::shared
