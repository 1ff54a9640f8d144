// _msize and its twin.
#include "entry/windows/names.h"

namespace crt = rh::crt;
using rh::g_own_host;

RH_CRT(size_t, _msize, (void* block), crt::msize(g_own_host, block))
RH_CRT(size_t, _msize_base, (void* block), crt::msize(g_own_host, block))
