#pragma once

#include "blocks.h"

// Each writes a line per check. The first ones are called for each kind of heap, by each of the two ways to it.
void check_alloc(const Subject& subject);
void check_absurd(const Subject& subject);
void check_realloc(const Subject& subject);
void check_zeroed_growth(const Subject& subject);
void check_in_place(const Subject& subject);
void check_null(const Subject& subject);
void check_raising(const Subject& subject);
void check_threads(const Subject& subject);
void check_lock(const Subject& subject);

// These make heaps of their own.
void check_growth_figures();
void check_bad_pointers(const Door& door);
void check_create(const Door& door);
void check_maximum(const Door& door);
void check_executable(const Door& door);
void check_destroy(const Door& door);
void check_walk();
void check_information();
void check_user_values();
void check_multiple();

// What stands on the heap functions.
void check_movable();
void check_given();
void check_task_memory();
void check_strings();
void check_crt();

// Blocks made before reheap.dll is loaded, and what is done with them after.
void make_early_blocks();
void check_early_blocks();
