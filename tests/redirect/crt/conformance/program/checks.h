#pragma once

#include "blocks.h"
#include "spy.h"

// Each writes a line per check. What a CRT or a group of twins lacks is left out.
void check_malloc(const Twins& twins);
void check_calloc(const Twins& twins);
void check_realloc(const Twins& twins);
void check_recalloc(const Twins& twins);
void check_expand(const Twins& twins);
void check_msize(const Twins& twins);
void check_aligned(const Twins& twins);
void check_copies(const Twins& twins);
void check_heap(const Twins& twins);
void check_new_handler(const Twins& twins);
void check_operators();
void check_mixed_twins();
void check_inside();

// That freeing gives the memory back to reheap; nothing is written when all is well.
void check_released(const Twins& twins);

// Blocks made before reheap.dll is loaded, and what is done with them after.
void make_early_blocks();
void make_early_inside();
void check_early_blocks();
