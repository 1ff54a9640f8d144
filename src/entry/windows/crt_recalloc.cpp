// _recalloc and its twin.
#include "entry/windows/names.h"

namespace crt = rh::crt;
using rh::g_own_host;

RH_CRT(void*, _recalloc, (void* block, size_t count, size_t size), crt::recalloc(g_own_host, block, count, size))
RH_CRT(void*, _recalloc_base, (void* block, size_t count, size_t size), crt::recalloc(g_own_host, block, count, size))
