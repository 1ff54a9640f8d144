// malloc, calloc, realloc, free and their twins.
#include "entry/windows/crt_fast.h"
#include "entry/windows/names.h"

namespace crt = rh::crt;
using rh::g_own_host;

RH_CRT(void*, malloc, (size_t size), crt::malloc_inlined(g_own_host, size))
RH_CRT(void*, calloc, (size_t count, size_t size), crt::calloc(g_own_host, count, size))
RH_CRT(void*, realloc, (void* block, size_t size), crt::realloc(g_own_host, block, size))
RH_CRT(void, free, (void* block), crt::free_inlined(g_own_host, block))
RH_CRT(void*, _malloc_base, (size_t size), crt::malloc(g_own_host, size))
RH_CRT(void*, _calloc_base, (size_t count, size_t size), crt::calloc(g_own_host, count, size))
RH_CRT(void*, _realloc_base, (void* block, size_t size), crt::realloc(g_own_host, block, size))
RH_CRT(void, _free_base, (void* block), crt::free(g_own_host, block))

// Who takes malloc from this archive takes the other groups too.
namespace rh {
extern const void* const g_crt_groups[];
}
namespace {
__attribute__((used)) const void* const* const kGroups = rh::g_crt_groups;
}
