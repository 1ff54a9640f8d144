/* What the crimes here share. The main of each commits one misuse and should not come to its end; the build calls it
 * crime_NAME, of which main.c makes one program. */
#include <reheap/reheap.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <malloc.h>
#define malloc_usable_size _msize
#endif

#define MIB ((size_t)1024 * 1024)

/* Keeps the compiler from seeing the crime. */
static inline void* hidden(void* pointer) {
  void* volatile unseen = pointer;
  return unseen;
}

static inline int survived(const void* block) {
  printf("survived, with %p\n", block);
  return 0;
}

static inline void append(const char* text, size_t length, void* into) { strncat((char*)into, text, length); }

/* The end of the realm, from the library's own report: there the heap comes last. */
static inline void* unused_in_realm(void) {
  static char report[16384];
  rh_report_json(append, report);
  const char* realm = strstr(report, "\"realm\"");
  const char* base = strstr(realm, "\"base\"");
  const char* reserved = strstr(realm, "\"reserved\"");
  const uintptr_t begin = (uintptr_t)strtoull(strchr(base + 6, '"') + 1, NULL, 0);
  const size_t size = (size_t)strtoull(strchr(reserved, ':') + 1, NULL, 10);
  return (void*)(begin + size - MIB / 4);
}
