#pragma once

#include <stddef.h>

// reheap.dll, when this run has it: by the launcher before the program began, or by LoadLibrary. Nothing here does
// anything in a plain run.
void find_reheap();
bool load_reheap(const char* path);
bool reheap_loaded();

bool reheap_owns(const void* pointer);

// Bytes in blocks that reheap has handed out.
size_t reheap_in_use();
