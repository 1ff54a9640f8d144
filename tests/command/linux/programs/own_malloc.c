/* A program that brings its own malloc, as one that links jemalloc statically does, and exports it: the
 * loader then takes it before any preloaded one. */
#include <stddef.h>
#include <string.h>

static char heap[1 << 20];
static size_t used;

void* malloc(size_t size) {
  const size_t at = used;
  used += (size + 15) & ~(size_t)15;
  return used <= sizeof heap ? heap + at : NULL;
}
void free(void* block) { (void)block; }
void* calloc(size_t count, size_t size) { return malloc(count * size); }
void* realloc(void* block, size_t size) {
  void* grown = malloc(size);
  if (grown && block) memmove(grown, block, size);
  return grown;
}
/* The name jemalloc is known by. */
void* mallocx(size_t size, int flags) { return (void)flags, malloc(size); }

int main(void) { return 0; }
