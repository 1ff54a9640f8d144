// The allocation functions of Windows' C runtimes, their rules once. A call comes through one runtime, its host: what
// this heap did not make goes to what that runtime did before, and its errno, new mode and new-handler are the ones
// that count. Who made a block is found in this order: this heap, another copy of it, the host.
//
// Blocks are freed by any function of the family, whichever made them: `free` takes blocks of aligned_malloc and the
// other way round, which Microsoft's runtime does not.
#pragma once

#include <cstddef>

#include "entry/windows/crt_host.h"

namespace rh::crt {

void* malloc(const Host& host, size_t size);
void free(const Host& host, void* block);
void* calloc(const Host& host, size_t count, size_t size);
void* realloc(const Host& host, void* block, size_t size);
void* recalloc(const Host& host, void* block, size_t count, size_t size);
void* expand(const Host& host, void* block, size_t size);
size_t msize(const Host& host, void* block);

// In a hardened build from the memory of a partition (arena/partition.h), to which a block of another is moved.
void* malloc_of(const Host& host, unsigned of, size_t size);
void* calloc_of(const Host& host, unsigned of, size_t count, size_t size);
void* realloc_of(const Host& host, unsigned of, void* block, size_t size);

void* aligned_malloc(const Host& host, size_t size, size_t alignment);
void* aligned_realloc(const Host& host, void* block, size_t size, size_t alignment);
void* aligned_recalloc(const Host& host, void* block, size_t count, size_t size, size_t alignment);
void* aligned_offset_malloc(const Host& host, size_t size, size_t alignment, size_t offset);
void* aligned_offset_realloc(const Host& host, void* block, size_t size, size_t alignment, size_t offset);
void* aligned_offset_recalloc(const Host& host, void* block, size_t count, size_t size, size_t alignment,
                              size_t offset);
size_t aligned_msize(const Host& host, void* block, size_t alignment, size_t offset);
void aligned_free(const Host& host, void* block);

}  // namespace rh::crt
