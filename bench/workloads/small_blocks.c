/* What an allocator costs a program that hardly uses it: each thread takes 200 small blocks and ends.
 *
 *   small_blocks THREADS    0: the main thread alone, no thread is made */
#include "workload.h"

enum { BLOCKS = 200 };

static void* take(void* argument) {
  void* blocks[BLOCKS];
  Random random = random_for((unsigned)(intptr_t)argument);
  for (int i = 0; i < BLOCKS; i++) {
    size_t size = skewed_size(&random, 4, 9);
    blocks[i] = must(malloc(size));
    touch_pages(blocks[i], size);
  }
  for (int i = 0; i < BLOCKS; i += 2) free(blocks[i]);
  return NULL;
}

int main(int argc, char** argv) {
  int threads = argc == 2 ? atoi(argv[1]) : -1;
  if (threads < 0 || threads > MOST_THREADS) {
    fprintf(stderr, "usage: small_blocks THREADS (0 to %d)\n", MOST_THREADS);
    return 2;
  }
  if (threads == 0)
    take(NULL);
  else
    run_threads(threads, take);
  return 0;
}
