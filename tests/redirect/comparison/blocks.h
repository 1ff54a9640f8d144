#pragma once

#include <windows.h>

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;
constexpr size_t kNaturalAlignment = 2 * sizeof(void*);
constexpr size_t kMost = ~size_t{0};

// A size no process has; named, so that 32-bit output reads the same.
struct Huge {
  const char* name;
  size_t size;
};

// Contents by which a block is known again. A null block holds nothing.
void fill(void* block, size_t size, unsigned seed);
bool holds(const void* block, size_t size, unsigned seed);
bool all_zero(const void* block, size_t begin, size_t end);
