#pragma once

#include <stdint.h>
#include <windows.h>

#include <initializer_list>

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;
constexpr size_t operator""_M(unsigned long long mebibytes) { return static_cast<size_t>(mebibytes) * kMiB; }
constexpr size_t kNaturalAlignment = 2 * sizeof(void*);
constexpr size_t kMost = ~size_t{0};
constexpr size_t kHalf = kMost / 2;

// A size no process has; named, so that 32-bit output reads the same.
struct Huge {
  const char* name;
  size_t size;
};

// "heap-maxreq" is the most that Microsoft's runtimes pass on to their heap.
constexpr Huge kHuge[] = {{"max", kMost},
                          {"max-1", kMost - 1},
                          {"max-15", kMost - 15},
                          {"heap-maxreq+1", kMost - 30},
                          {"heap-maxreq", kMost - 31},
                          {"max-4k", kMost - 4 * kKiB},
                          {"max-64k", kMost - 64 * kKiB},
                          {"half+1", kHalf + 1},
                          {"half", kHalf},
                          {"half-64k", kHalf - 64 * kKiB}};

constexpr size_t lesser(size_t a, size_t b) { return a < b ? a : b; }

// Whether what lies `offset` behind the pointer is aligned so; to 0 is everything.
inline bool is_aligned(const void* block, size_t alignment = kNaturalAlignment, size_t offset = 0) {
  return alignment == 0 || (reinterpret_cast<uintptr_t>(block) + offset) % alignment == 0;
}

// Contents by which a block is known again. A null block holds nothing.
void fill(void* block, size_t size, unsigned seed);
bool holds(const void* block, size_t size, unsigned seed);
bool all_zero(const void* block, size_t begin, size_t end);
