/* After Berger's threadtest: each thread takes its share of 100,000 blocks of 8 bytes and frees them, again and
 * again. Nothing is shared: what limits it is the allocator alone. */
#include "workload.h"

enum { BLOCK = 8, TOTAL_BLOCKS = 100000, ROUNDS = 120 };

static int threads;

static void* work(void* argument) {
  (void)argument;
  int count = TOTAL_BLOCKS / threads;
  Marked** blocks = must(malloc((size_t)count * sizeof *blocks));
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < count; i++) blocks[i] = take_marked(BLOCK);
    for (int i = 0; i < count; i++) free_marked(blocks[i]);
  }
  free(blocks);
  return NULL;
}

int main(int argc, char** argv) {
  threads = thread_count(argc, argv);
  run_threads(threads, work);
  return 0;
}
