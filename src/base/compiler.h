// Attributes that compilers spell differently, or that make intent visible.
#pragma once

#define RH_LIKELY(condition) __builtin_expect(static_cast<bool>(condition), 1)
#define RH_UNLIKELY(condition) __builtin_expect(static_cast<bool>(condition), 0)
#define RH_COLD [[gnu::cold, gnu::noinline]]
#define RH_NOINLINE [[gnu::noinline]]
#define RH_INLINE [[gnu::always_inline]] inline

// For data that is defined in another file of the same library: declarations do not learn it from -fvisibility, and
// without it every access first loads the address.
#if defined(__ELF__) || defined(__MACH__)
#define RH_HIDDEN [[gnu::visibility("hidden")]]
#else
#define RH_HIDDEN
#endif

// Runs in most programs, in a file whose other functions few programs call: src/entry/linux/layout.ld.in puts
// those away from what all programs touch.
#if defined(__ELF__)
#define RH_AT_START [[gnu::section(".text.startup")]]
#else
#define RH_AT_START
#endif

// Many zeros that few programs touch: they lie behind all others, so that these share pages.
#if defined(__ELF__)
#define RH_RARE_ZEROS [[gnu::section(".bss.rare")]]
#else
#define RH_RARE_ZEROS
#endif

// One load, and never an allocation on first touch, in a shared library too.
#define RH_THREAD_LOCAL __attribute__((tls_model("initial-exec"))) thread_local
