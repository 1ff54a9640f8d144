// Attributes that compilers spell differently, or that make intent visible.
#pragma once

#define RH_LIKELY(condition) __builtin_expect(static_cast<bool>(condition), 1)
#define RH_UNLIKELY(condition) __builtin_expect(static_cast<bool>(condition), 0)
#define RH_COLD [[gnu::cold, gnu::noinline]]
#define RH_NOINLINE [[gnu::noinline]]
#define RH_INLINE [[gnu::always_inline]] inline
