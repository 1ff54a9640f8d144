/* The two shortest ways through an allocator, and two where few blocks lie together, to be counted by instructions.
 *
 *   fast_path pairs N        N times: take 64 bytes, free them
 *   fast_path mixed N        N times: take 100 blocks of mixed sizes, then free them in the same order
 *   fast_path kibibytes N    N times: free one of 400 blocks of 1,024 bytes, chosen at random, and take another
 *   fast_path pages N        the same with 4,096 bytes
 *
 * Two runs of different N differ by the loop alone: start-up and first use cancel out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 100, REPLACED = 400 };

static void pairs(long count) {
  for (long i = 0; i < count; i++) free(malloc(64));
}

/* 16 to 1,024 bytes, small ones most often, as programs do; always the same. */
static void choose_sizes(size_t sizes[BLOCKS]) {
  unsigned state = 12345;
  for (int i = 0; i < BLOCKS; i++) {
    state = state * 1103515245u + 12345u;
    size_t most = (size_t)16 << (state >> 16) % 7;
    state = state * 1103515245u + 12345u;
    sizes[i] = 1 + (state >> 16) % most;
  }
}

static void mixed(long count) {
  size_t sizes[BLOCKS];
  void* blocks[BLOCKS];
  choose_sizes(sizes);
  for (long i = 0; i < count; i++) {
    for (int b = 0; b < BLOCKS; b++) blocks[b] = malloc(sizes[b]);
    for (int b = 0; b < BLOCKS; b++) free(blocks[b]);
  }
}

static void replaced(size_t size, long count) {
  void* blocks[REPLACED];
  unsigned state = 12345;
  for (int b = 0; b < REPLACED; b++) blocks[b] = malloc(size);
  for (long i = 0; i < count; i++) {
    state = state * 1103515245u + 12345u;
    unsigned b = (state >> 16) % REPLACED;
    free(blocks[b]);
    blocks[b] = malloc(size);
  }
}

int main(int argc, char** argv) {
  long count = argc == 3 ? atol(argv[2]) : 0;
  if (count > 0 && strcmp(argv[1], "pairs") == 0)
    pairs(count);
  else if (count > 0 && strcmp(argv[1], "mixed") == 0)
    mixed(count);
  else if (count > 0 && strcmp(argv[1], "kibibytes") == 0)
    replaced(1024, count);
  else if (count > 0 && strcmp(argv[1], "pages") == 0)
    replaced(4096, count);
  else {
    fprintf(stderr, "usage: fast_path pairs|mixed|kibibytes|pages COUNT\n");
    return 2;
  }
  return 0;
}
