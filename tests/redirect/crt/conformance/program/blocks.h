#pragma once

#include "comparison/blocks.h"
#include "comparison/guard.h"
#include "comparison/line.h"
#include "comparison/reheap.h"
#include "crt.h"

// Memory of the size that was in use and is free again, not zero: what a wrong size would show.
void leave_dirty(const Twins& twins, size_t size);

// The block must be one of reheap's; else the line says so.
void expect_served(Line& line, const void* block);

// For what may come from either: a line of its own, which a plain run does not have.
void tell_served(const char* name, const void* block);

// What is seen of a fresh block of `size` bytes; it is filled. It must be reheap's if that is loaded.
void tell_block(Line& line, const Twins& twins, void* block, size_t size);

// What is seen of a block that was resized to `size` bytes, of which `kept` hold the seed's contents.
void tell_resized(Line& line, const Twins& twins, void* block, size_t size, size_t kept, unsigned seed);

// Its `_msize` by the twin of the group that has one.
size_t exact_size(const Twins& twins, void* block);
