// The heap that is stressed: reheap's own names beside the system's malloc, or whatever serves
// malloc.
#pragma once

#include <cstddef>

#ifdef STRESS_RH

#include "reheap/reheap.h"

namespace stress {
inline void* make(std::size_t size) { return rh_malloc(size); }
inline void* make_zeroed(std::size_t count, std::size_t size) { return rh_calloc(count, size); }
inline void* make_aligned(std::size_t alignment, std::size_t size) { return rh_aligned_alloc(alignment, size); }
inline void* resize(void* block, std::size_t size) { return rh_realloc(block, size); }
inline void drop(void* block) { rh_free(block); }
inline std::size_t usable(void* block) { return rh_usable_size(block); }
}  // namespace stress

#elif defined(_WIN32)

#include <malloc.h>

#include <cstdlib>

namespace stress {
inline void* make(std::size_t size) { return malloc(size); }
inline void* make_zeroed(std::size_t count, std::size_t size) { return calloc(count, size); }
// For _aligned_free alone on the runtime's heap; reheap takes it by any name.
inline void* make_aligned(std::size_t alignment, std::size_t size) { return _aligned_malloc(size, alignment); }
inline void* resize(void* block, std::size_t size) { return realloc(block, size); }
inline void drop(void* block) { free(block); }
inline std::size_t usable(void* block) { return _msize(block); }
}  // namespace stress

#else

#include <malloc.h>

#include <cstdlib>

namespace stress {
inline void* make(std::size_t size) { return malloc(size); }
inline void* make_zeroed(std::size_t count, std::size_t size) { return calloc(count, size); }
inline void* make_aligned(std::size_t alignment, std::size_t size) { return aligned_alloc(alignment, size); }
inline void* resize(void* block, std::size_t size) { return realloc(block, size); }
inline void drop(void* block) { free(block); }
inline std::size_t usable(void* block) { return malloc_usable_size(block); }
}  // namespace stress

#endif
