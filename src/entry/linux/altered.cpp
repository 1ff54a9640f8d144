#include "entry/linux/altered.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "heap/large.h"

using namespace rh;

// Of the advice that programs give most stays with the pages. Not this.
static bool passes(long advice) { return advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_WILLNEED; }

static bool alters(long number, long third, long fourth) {
  switch (number) {
  case SYS_mprotect:
  case SYS_pkey_mprotect:
  case SYS_mlock:
  case SYS_mlock2:
  case SYS_munmap: return true;
  case SYS_madvise: return !passes(third);
#if defined(SYS_mmap)
  case SYS_mmap: return (fourth & MAP_FIXED) != 0;
#endif
  default: return false;
  }
}

void altered::note_call(long number, const void* pages, size_t size, long third, long fourth, long, long) {
  if (g_realm.holds(pages) && alters(number, third, fourth)) large::note_altered(pages, size);
}
