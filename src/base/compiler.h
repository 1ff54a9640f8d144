// Attributes that compilers spell differently, or that make intent visible.
#pragma once

#define RH_LIKELY(condition) __builtin_expect(static_cast<bool>(condition), 1)
#define RH_UNLIKELY(condition) __builtin_expect(static_cast<bool>(condition), 0)
#define RH_COLD [[gnu::cold, gnu::noinline]]
#define RH_NOINLINE [[gnu::noinline]]
#define RH_INLINE [[gnu::always_inline]] inline

// For data that is defined in another file of the same library: declarations do not learn it from -fvisibility, and
// without it every access first loads the address.
#if defined(__ELF__)
#define RH_HIDDEN [[gnu::visibility("hidden")]]
#else
#define RH_HIDDEN
#endif
