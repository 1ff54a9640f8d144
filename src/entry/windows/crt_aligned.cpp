// The aligned functions.
#include "entry/windows/names.h"

namespace crt = rh::crt;
using rh::g_own_host;

RH_CRT(void*, _aligned_malloc, (size_t size, size_t alignment), crt::aligned_malloc(g_own_host, size, alignment))
RH_CRT(void*, _aligned_realloc, (void* block, size_t size, size_t alignment),
       crt::aligned_realloc(g_own_host, block, size, alignment))
RH_CRT(void*, _aligned_recalloc, (void* block, size_t count, size_t size, size_t alignment),
       crt::aligned_recalloc(g_own_host, block, count, size, alignment))
RH_CRT(void*, _aligned_offset_malloc, (size_t size, size_t alignment, size_t offset),
       crt::aligned_offset_malloc(g_own_host, size, alignment, offset))
RH_CRT(void*, _aligned_offset_realloc, (void* block, size_t size, size_t alignment, size_t offset),
       crt::aligned_offset_realloc(g_own_host, block, size, alignment, offset))
RH_CRT(void*, _aligned_offset_recalloc, (void* block, size_t count, size_t size, size_t alignment, size_t offset),
       crt::aligned_offset_recalloc(g_own_host, block, count, size, alignment, offset))
RH_CRT(size_t, _aligned_msize, (void* block, size_t alignment, size_t offset),
       crt::aligned_msize(g_own_host, block, alignment, offset))
RH_CRT(void, _aligned_free, (void* block), crt::aligned_free(g_own_host, block))
