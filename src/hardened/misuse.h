// What hardened builds say when a program misuses memory. Then they end it, or go on (`g_goes_on`): each function
// returns in that case only, and its caller does what harms least.
#pragma once

#include <atomic>

#include "hardened/tail.h"

namespace rh::hardened {

RH_HIDDEN extern constinit std::atomic<bool> g_goes_on;

RH_COLD void tell_overflow(const void* block, size_t size, const char* seen);
RH_COLD void tell_written(const void* block, size_t size);
RH_COLD void tell_twice(const void* block, size_t size);
RH_COLD void tell_maker(const void* block, size_t size, Maker maker, Maker freed_by);
RH_COLD void tell_size(const void* block, size_t size, size_t freed_as);
RH_COLD void tell_invalid(const void* pointer);
RH_COLD void tell_tag(const void* pointer, const void* block);
RH_COLD void tell_heap(const void* block, size_t size);

}  // namespace rh::hardened
