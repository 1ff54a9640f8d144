#pragma once

#include <windows.h>

#include "comparison/line.h"

// reheap.dll, when this run has it. Nothing here does anything in a plain run.
bool load_reheap(const char* path);
bool reheap_loaded();

bool reheap_owns(const void* pointer);

// The block must be one of reheap's; else the line says so.
void expect_served(Line& line, const void* block);

// For what may come from either: a line of its own, which a plain run does not have.
void tell_served(const char* name, const void* block);

// Bytes in blocks that reheap has handed out.
size_t reheap_in_use();
