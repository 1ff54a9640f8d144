/* The C library's heap with a fault planted in it, for preloading: a comparison of two builds of this file must find
 * the fault, and its size is known beforehand.
 *
 *   -DWORK=N    each allocation does N units of work first (work.h)
 *   -DWASTE=N   each block takes N percent more memory than was asked for, and touches it
 *
 * With neither it is the plain heap under another name. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "work.h"

#ifndef WORK
#define WORK 0
#endif
#ifndef WASTE
#define WASTE 0
#endif

#define EXPORT __attribute__((visibility("default")))

/* What glibc calls its own heap by; looking the next malloc up would allocate. */
extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* block, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void* block);

enum { WHOLE = 100, SMALLEST_ALIGNMENT = sizeof(void*) };

/* 0 when there is no such size. */
static size_t with_waste(size_t size) {
  size_t more = size / WHOLE * WASTE + size % WHOLE * WASTE / WHOLE;
  return size > PTRDIFF_MAX - more ? 0 : size + more;
}

static void* out_of_memory(void) {
  errno = ENOMEM;
  return NULL;
}

static void* spoil(char* block, size_t size, size_t taken) {
  if (block && taken > size) memset(block + size, 1, taken - size);
  return block;
}

EXPORT void* malloc(size_t size) {
  work(WORK);
  size_t taken = with_waste(size);
  return taken || !size ? spoil(__libc_malloc(taken), size, taken) : out_of_memory();
}

EXPORT void* calloc(size_t count, size_t size) {
  size_t asked;
  if (__builtin_mul_overflow(count, size, &asked)) return out_of_memory();
  work(WORK);
  size_t taken = with_waste(asked);
  return taken || !asked ? spoil(__libc_calloc(1, taken), asked, taken) : out_of_memory();
}

EXPORT void* realloc(void* block, size_t size) {
  if (!size) return __libc_realloc(block, size);
  work(WORK);
  size_t taken = with_waste(size);
  return taken ? spoil(__libc_realloc(block, taken), size, taken) : out_of_memory();
}

EXPORT void* memalign(size_t alignment, size_t size) {
  work(WORK);
  size_t taken = with_waste(size);
  return taken || !size ? spoil(__libc_memalign(alignment, taken), size, taken) : out_of_memory();
}

EXPORT void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

EXPORT int posix_memalign(void** block, size_t alignment, size_t size) {
  if (alignment < SMALLEST_ALIGNMENT || (alignment & (alignment - 1))) return EINVAL;
  int before = errno;
  void* made = memalign(alignment, size);
  errno = before;
  if (!made) return ENOMEM;
  *block = made;
  return 0;
}

EXPORT void free(void* block) { __libc_free(block); }
