// What the C libraries declare differently.
#pragma once

#include <features.h>

// How a function of the C library's is declared that does not throw: a second declaration has to say the same.
#if defined(__GLIBC__)
#define RH_C_NOEXCEPT noexcept
#else
#define RH_C_NOEXCEPT
#endif
