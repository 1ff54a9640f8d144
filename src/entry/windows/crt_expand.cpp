// _expand and its twin.
#include "entry/windows/names.h"

namespace crt = rh::crt;
using rh::g_own_host;

RH_CRT(void*, _expand, (void* block, size_t size), crt::expand(g_own_host, block, size))
RH_CRT(void*, _expand_base, (void* block, size_t size), crt::expand(g_own_host, block, size))
