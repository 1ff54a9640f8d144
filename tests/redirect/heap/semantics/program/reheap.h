#pragma once

#include "comparison/line.h"

// reheap.dll, when this run has it: by the launcher before the program began, or by LoadLibrary. Nothing here does
// anything in a plain run.

void find_reheap();
bool load_reheap(const char* path);
bool reheap_loaded();

bool reheap_owns(const void* pointer);

// Whose a block must be. Where the layer of HeapAlloc is on, the plain heaps' are reheap's, and what reheap cannot do
// is the system's.
enum class Maker { reheap, system };
void expect_maker(Line& line, Maker maker, const void* block);

// What was expected, in a line that a plain run does not have.
void tell_makers();
