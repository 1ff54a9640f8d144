// Blocks freed by a thread that does not own their slab. They are collected per slab, in batches, and batches per
// owner, in parcels, which travel together: one push, one atomic operation, however many blocks they are. Batches are
// after the BatchIt idea (J. Li et al., "BatchIt: Optimizing Message-Passing Allocators for Producer-Consumer
// Workloads", 2024).
#pragma once

#include "heap/types.h"

namespace rh {

// By the thread that owns `heap`, or has none. True when memory of the owner's may have become free, or heaps hold much
// back.
bool free_remote(Heap* heap, Span* slab, Block* block);

// The same for a block of a heap that may be destroyed before this thread frees again.
bool free_alone(Heap* heap, Span* slab, Block* block);

// By the owner: sends what it holds back for others. True as above.
bool post_all(Heap* heap);

// By the owner, in a fork's child: what it holds back for slabs that are nobody's now is lost with them.
void forget_leaked(Heap* heap);

// What others have freed, no longer counted as waiting.
Block* take_inbox(Heap* heap);

// Collects what others have freed. The caller holds heap.lock.
void drain(Heap* heap, Caller caller);

}  // namespace rh
