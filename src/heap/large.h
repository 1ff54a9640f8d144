// Blocks with a span of their own.
#pragma once

#include "heap/heap.h"

namespace rh::large {

// Null when out of memory.
void* allocate(size_t size, size_t alignment, Prefer prefer);
void* allocate_zeroed(size_t size);
void free(Span* span);
bool resize_in_place(Span* span, size_t size, Fit fit);
void* resize_by_moving(Span* span, size_t size);

// The span behind allocate(), for a heap that keeps a list.
Span* allocate_span(size_t size, size_t alignment, Prefer prefer);

// Gives the span of a block that nobody holds any longer back to the arena.
void release(Span* span);

// The program changes what pages are that it holds, or some of them: how they are protected, whether they are locked,
// what is mapped there, what forked children have of them. That ends with the block.
void note_altered(const void* pages, size_t size);

// The head of the large block that a unit lies in, or null. Not a slab's unit.
Span* head_of(Span* unit);

// Which memory to take for a block of `size` bytes that is to read as zero: for all but the largest, clearing warm memory
// is cheaper than faulting in what the OS has cleared, and what is warm and passed over would only go back to the OS.
Prefer preferred_for_zero(size_t size);

// Makes the memory of an allocated span read as zero.
void clear(Span* span, size_t size);

}  // namespace rh::large
