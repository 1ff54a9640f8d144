// What programs do to the pages of blocks they hold: the functions that change what pages are tell the heap which.
#include "entry/linux/pages.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/compiler.h"
#include "entry/linux/kernel.h"
#include "heap/large.h"

// Defines `result name parameters`, of the C library's by that name, whose pages are told of `when` that holds. The
// program's own declarations are the C library's; here only the shape counts.
#define RH_ALTERS(result, name, parameters, when, ...)                             \
  static constinit rh::NextFunction<result parameters> g_##name{#name};            \
  extern "C" [[gnu::visibility("default")]] result name parameters RH_C_NOEXCEPT;  \
  extern "C" [[gnu::visibility("default")]] result name parameters RH_C_NOEXCEPT { \
    if (g_realm.holds(pages) && (when)) large::note_altered(pages, size);          \
    return next_or_kernel(g_##name, __VA_ARGS__);                                  \
  }

using namespace rh;

// Being called, it brings this file into programs that link the archive.
RH_AT_START void pages::stand_in() {}

// Of the advice that programs give most stays with the pages. Not this.
static bool passes(int advice) { return advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_WILLNEED; }

RH_ALTERS(int, mprotect, (void* pages, size_t size, int protection), true, SYS_mprotect, pages, size, protection)
RH_ALTERS(int, pkey_mprotect, (void* pages, size_t size, int protection, int key), true, SYS_pkey_mprotect, pages, size,
          protection, key)
RH_ALTERS(int, madvise, (void* pages, size_t size, int advice), !passes(advice), SYS_madvise, pages, size, advice)
RH_ALTERS(int, mlock, (const void* pages, size_t size), true, SYS_mlock, pages, size)
RH_ALTERS(int, mlock2, (const void* pages, size_t size, unsigned flags), true, SYS_mlock2, pages, size, flags)
RH_ALTERS(int, munmap, (void* pages, size_t size), true, SYS_munmap, pages, size)

#if !defined(__i386__)  // where a system call here has five arguments at most

using Offset = off_t;  // off64_t, which not every C library has: off_t has 64 bits too

RH_ALTERS(void*, mmap, (void* pages, size_t size, int protection, int flags, int file, off_t at),
          (flags & MAP_FIXED) != 0, SYS_mmap, pages, size, protection, flags, file, at)
RH_ALTERS(void*, mmap64, (void* pages, size_t size, int protection, int flags, int file, Offset at),
          (flags & MAP_FIXED) != 0, SYS_mmap, pages, size, protection, flags, file, at)

#endif
