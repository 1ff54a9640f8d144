// The C library's allocation functions, by their names on this system.
#pragma once

#include <cstddef>
#include <span>

namespace contract {

// Each requests `size` bytes in its own way; the block can be passed to free and realloc.
struct Maker {
  const char* call;
  void* (*make)(std::size_t size);
};
std::span<const Maker> makers();

struct AlignedMaker {
  const char* call;
  void* (*make)(std::size_t alignment, std::size_t size);
  void* (*resize)(void* block, std::size_t alignment, std::size_t size);
  void (*drop)(void* block);
};
std::span<const AlignedMaker> aligned_makers();

// Usable bytes in the block.
std::size_t usable(void* block);

// realloc for count * size bytes, checked.
void* resize_array(void* block, std::size_t count, std::size_t size);

// Whether sums and products of sizes are checked and every failure sets errno: by the library that serves the names,
// and by the C library's own functions.
bool runtime_is_strict();
bool c_library_is_strict();

// Blocks made by the C library's own functions, whoever serves the names otherwise.
std::span<const Maker> foreign_makers();
std::span<const AlignedMaker> foreign_aligned_makers();
void free_foreign(void* block);  // by the C library itself

// Whether the system can move a large block's pages to another address.
extern const bool kMovesPages;

// Whether realloc to no bytes frees the block and gives NULL; else it gives another one.
extern const bool kReallocFrees;

}  // namespace contract
