#pragma once

#include "comparison/blocks.h"
#include "comparison/line.h"
#include "crt.h"

// Also counts whose product overflows.
constexpr Huge kHuge[] = {{"max", kMost},
                          {"max-1", kMost - 1},
                          {"max-15", kMost - 15},
                          {"heap-maxreq+1", kMost - 30},
                          {"heap-maxreq", kMost - 31},
                          {"half+1", kMost / 2 + 1},
                          {"half", kMost / 2},
                          {"half-64k", kMost / 2 - 64 * kKiB}};

// Memory of the size that was in use and is free again, not zero: what a wrong size would show.
void leave_dirty(const Twins& twins, size_t size);

// What is seen of a fresh block of `size` bytes; it is filled. It must be reheap's if that is loaded.
void tell_block(Line& line, const Twins& twins, void* block, size_t size);

// What is seen of a block that was resized to `size` bytes, of which `kept` hold the seed's contents.
void tell_resized(Line& line, const Twins& twins, void* block, size_t size, size_t kept, unsigned seed);

// Its `_msize` by the twin of the group that has one.
size_t exact_size(const Twins& twins, void* block);
