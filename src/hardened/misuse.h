// What hardened builds say when a program misuses memory, before they end it.
#pragma once

#include "hardened/tail.h"

namespace rh::hardened {

[[noreturn]] void fail_overflow(const void* block, size_t size, const char* seen);
[[noreturn]] void fail_written(const void* block, size_t size);
[[noreturn]] void fail_twice(const void* block, size_t size);
[[noreturn]] void fail_maker(const void* block, size_t size, Maker maker, Maker freed_by);
[[noreturn]] void fail_size(const void* block, size_t size, size_t freed_as);

}  // namespace rh::hardened
