// What the C libraries declare differently.
#pragma once

#include <features.h>

// How a function of the C library's is declared that does not throw: a second declaration has to say the same.
#if defined(__GLIBC__)
#define RH_C_NOEXCEPT noexcept
#else
#define RH_C_NOEXCEPT
#endif

// glibc's, at whose end `library` is no more; in all its versions and ways to link. musl has none.
extern "C" [[gnu::weak]] int __register_atfork(void (*before)(), void (*in_parent)(), void (*in_child)(),
                                               void* library);
