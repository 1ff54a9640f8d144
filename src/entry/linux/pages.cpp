// What programs do to the pages of blocks they hold: the functions that change what pages are tell the heap which.
#include "entry/linux/pages.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/compiler.h"
#include "entry/linux/altered.h"
#include "entry/linux/kernel.h"

using namespace rh;

// Being called, it brings this file into programs that link the archive.
RH_AT_START void pages::stand_in() {}

template <typename... Rest> static void note_call(long number, const void* pages, size_t size, Rest... rest) {
  altered::note_call(number, pages, size, as_word(rest)...);
}

// Defines `result name parameters`, of the C library's by that name, which hands its parameters to a system call. The
// program's own declarations are the C library's; here only the shape counts.
#define RH_ALTERS(result, name, parameters, number, ...)                           \
  static constinit rh::NextFunction<result parameters> g_##name{#name};            \
  extern "C" [[gnu::visibility("default")]] result name parameters RH_C_NOEXCEPT;  \
  extern "C" [[gnu::visibility("default")]] result name parameters RH_C_NOEXCEPT { \
    note_call(number, __VA_ARGS__);                                                \
    return next_or_kernel(g_##name, number, __VA_ARGS__);                          \
  }

RH_ALTERS(int, mprotect, (void* pages, size_t size, int protection), SYS_mprotect, pages, size, protection)
RH_ALTERS(int, pkey_mprotect, (void* pages, size_t size, int protection, int key), SYS_pkey_mprotect, pages, size,
          protection, key)
RH_ALTERS(int, madvise, (void* pages, size_t size, int advice), SYS_madvise, pages, size, advice)
RH_ALTERS(int, mlock, (const void* pages, size_t size), SYS_mlock, pages, size)
RH_ALTERS(int, mlock2, (const void* pages, size_t size, unsigned flags), SYS_mlock2, pages, size, flags)
RH_ALTERS(int, munmap, (void* pages, size_t size), SYS_munmap, pages, size)

#if !defined(__i386__)  // where a system call here has five arguments at most

using Offset = off_t;  // off64_t, which not every C library has: off_t has 64 bits too

RH_ALTERS(void*, mmap, (void* pages, size_t size, int protection, int flags, int file, off_t at), SYS_mmap, pages, size,
          protection, flags, file, at)
RH_ALTERS(void*, mmap64, (void* pages, size_t size, int protection, int flags, int file, Offset at), SYS_mmap, pages,
          size, protection, flags, file, at)

#endif
