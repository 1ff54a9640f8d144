/* Says by how much libc's own heap grew while a megabyte of blocks was taken, and how much that was. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 4096, BLOCK_SIZE = 256 };

static void* blocks[BLOCKS];

static size_t in_use(struct mallinfo2 (*libc_mallinfo)(void)) {
  struct mallinfo2 info = libc_mallinfo();
  return info.uordblks + info.hblkhd;
}

int main(void) {
  /* The handle, and the version, make sure that it is libc's mallinfo2: reheap answers such a dlsym itself. */
  void* libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  struct mallinfo2 (*libc_mallinfo)(void) = NULL;
  void* found = libc ? dlvsym(libc, "mallinfo2", "GLIBC_2.33") : NULL;
  memcpy(&libc_mallinfo, &found, sizeof found);
  if (!libc_mallinfo) {
    fprintf(stderr, "proof: this libc has no mallinfo2\n");
    return 2;
  }
  size_t before = in_use(libc_mallinfo);
  for (int i = 0; i < BLOCKS; i++) {
    blocks[i] = malloc(BLOCK_SIZE);
    if (!blocks[i]) return 3;
    memset(blocks[i], 1, BLOCK_SIZE);
  }
  size_t after = in_use(libc_mallinfo);
  for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
  printf("%zu %d\n", after > before ? after - before : 0, BLOCKS * BLOCK_SIZE);
  return 0;
}
