// First-class heaps: the same heap, its owner's part under the lock as well.
#pragma once

#include "heap/heap.h"

namespace rh::shared {

Heap* create();

// What a program knows of a heap: its address, and its life beside it. find gives null for what is no heap's, or was.
uintptr_t handle_of(const Heap* heap);
Heap* find(uintptr_t handle);

// Gives back all slabs and large blocks of the heap, and the heap.
void destroy(Heap* heap);

// Gives back what is empty. `collect` only if nobody is using the heap now, and by `token`.
void trim(Heap* heap);
bool collect(Heap* heap, ThreadToken token);

// Walks the live blocks in the order of their addresses: the first behind `block`, or of all when that is null; null
// when there are no more. With kExactSizes only.
void* next_block(Heap* heap, const void* block);

void* allocate(Heap* heap, size_t alignment, size_t size, bool zeroed);

// A block of this heap's, freed by any thread.
void free(Heap* heap, Span* slab, Block* block);

// A large span leaves its heap's list.
void forget_large(Span* span);

// The heap a live block belongs to, or null when it is a thread's.
Heap* heap_of(const void* block);

}  // namespace rh::shared
