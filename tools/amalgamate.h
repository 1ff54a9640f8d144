// How to compile it, with GCC 12 or Clang 16 and later:
//
//   c++ -std=c++20 -O2 -DNDEBUG -c reheap.cpp
//
// for Linux on x86-64, i686 and arm64, and for Windows (MinGW, and Clang in place of Microsoft's compiler). It needs
// threads of what it is linked with: -pthread and, with older C libraries, -ldl; on Windows -lntdll.
//
// By itself this is the core: the functions of reheap.h, beside the system's malloc. What else can be defined:
//
//   REHEAP_OVERRIDE   serve malloc, free and operator new too, in all of the program that this is linked into. Pass
//                     -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free, so that the
//                     compiler does not take what is inside them for a use of them.
//   REHEAP_HARDENED   the hardened build (docs/hardened.md)
//   RH_DEBUG_CHECKS   internal checks
//
// The core alone is C++ without its library: with -fno-exceptions a program in C, or in any other language, needs no
// C++ library to link it. With REHEAP_OVERRIDE exceptions are needed, for operator new. Position-independent code and
// -Os are as you like. Names are hidden, but for those of reheap.h and what REHEAP_OVERRIDE serves.

#if !defined(__cplusplus)
#error "reheap.cpp is C++: compile it with a C++ compiler"
#elif !defined(__GNUC__) && !defined(__clang__)
#error "reheap.cpp needs GCC or Clang; in place of Microsoft's compiler, clang-cl compiles it"
#elif __cplusplus < 202002L && (!defined(_MSVC_LANG) || _MSVC_LANG < 202002L)
#error "reheap.cpp is C++20: pass -std=c++20 (clang-cl: /std:c++20)"
#elif !defined(_WIN32) && !defined(__linux__)
#error "reheap.cpp is for Linux and Windows; for macOS build the library, docs/install/macos.md says how"
#elif !defined(__x86_64__) && !defined(__i386__) && !defined(__aarch64__)
#error "reheap runs on x86-64, i686 and arm64"
#elif defined(REHEAP_OVERRIDE) && !defined(__cpp_exceptions)
#error "REHEAP_OVERRIDE serves operator new, which throws: do not pass -fno-exceptions (clang-cl: pass /EHsc)"
#endif

#if defined(REHEAP_OVERRIDE) && defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || __has_feature(thread_sanitizer)
#define RH_UNDER_SANITIZER
#endif
#endif
#if defined(REHEAP_OVERRIDE) && \
    (defined(RH_UNDER_SANITIZER) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__))
#error "a sanitizer serves malloc itself: leave REHEAP_OVERRIDE out of builds under one"
#endif

// Its checked functions would be there already, inline, where those of the same names are defined here.
#undef _FORTIFY_SOURCE
// With 64-bit times a 32-bit C library's functions have other names, and what is defined here would get theirs.
#undef _TIME_BITS
#undef _FILE_OFFSET_BITS

// The C runtime's functions, which its headers declare as a DLL's, are defined here.
#if defined(REHEAP_OVERRIDE) && defined(_WIN32) && defined(__clang__)
#pragma clang diagnostic ignored "-Winconsistent-dllimport"
#elif defined(REHEAP_OVERRIDE) && defined(_WIN32)
#pragma GCC diagnostic ignored "-Wattributes"
#endif

#if defined(REHEAP_HARDENED)
#define RH_HARDENED
#endif
#if defined(_WIN32)
#define RH_EXACT_SIZES
#endif
#if !defined(REHEAP_BUILD)
#define REHEAP_BUILD "amalgamation"
#endif

#include <stdint.h>

#if UINTPTR_MAX > 0xffffffff
#define RH_64_BIT 1
#else
#define RH_64_BIT 0
#endif
#if RH_64_BIT && defined(__x86_64__)
#define RH_X86_64 1
#else
#define RH_X86_64 0
#endif

// Our namespace within: of no other library, whatever -fvisibility says.
#if defined(__ELF__)
#define RH_HIDE_BEGIN _Pragma("GCC visibility push(hidden)")
#define RH_HIDE_END _Pragma("GCC visibility pop")
#else
#define RH_HIDE_BEGIN
#define RH_HIDE_END
#endif

#include "reheap.h"
