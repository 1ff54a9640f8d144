/* Proves which allocator serves this process, as one line of JSON.
 *
 * Names can lie: a library built with hidden symbols is preloaded without an error and serves nothing,
 * and one that forwards to libc would carry the right names. So besides the files that define the
 * functions it reports by how much libc's own heap grew while a megabyte of blocks was taken. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 4096, BLOCK_SIZE = 256 };

static void* blocks[BLOCKS];

static const char* file_of(void* function) {
  Dl_info owner;
  return dladdr(function, &owner) && owner.dli_fname ? owner.dli_fname : "";
}

static size_t in_use(struct mallinfo2 (*libc_mallinfo)(void)) {
  struct mallinfo2 info = libc_mallinfo();
  return info.uordblks + info.hblkhd;
}

int main(void) {
  /* The handle makes sure that it is libc's mallinfo2, not one that an allocator brings. */
  void* libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  struct mallinfo2 (*libc_mallinfo)(void) = NULL;
  void* found = libc ? dlsym(libc, "mallinfo2") : NULL;
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
  size_t usable = malloc_usable_size(blocks[0]);
  for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
  printf("{\"malloc\":\"%s\",\"free\":\"%s\",\"realloc\":\"%s\",\"calloc\":\"%s\","
         "\"libc_grew\":%zu,\"taken\":%d,\"usable\":%zu}\n",
         file_of((void*)malloc), file_of((void*)free), file_of((void*)realloc),
         file_of((void*)calloc), after > before ? after - before : 0, BLOCKS * BLOCK_SIZE, usable);
  return 0;
}
