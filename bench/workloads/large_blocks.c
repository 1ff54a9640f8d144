/* Blocks of 1 to 100 MB in turn, a few of them alive, each page touched: shows whether large blocks are
 * kept warm, and what is paid for it in memory. */
#include "workload.h"

enum { ALIVE = 4, TOTAL_BLOCKS = 64, MEGABYTE = 1000000 };

static int threads;

static void* work(void* argument) {
  Random random = random_for((unsigned)(intptr_t)argument);
  char* alive[ALIVE] = {0};
  for (int i = 0; i < TOTAL_BLOCKS / threads; i++) {
    size_t size = (1 + below(&random, 100)) * MEGABYTE;
    free(alive[i % ALIVE]);
    alive[i % ALIVE] = must(malloc(size));
    touch_pages(alive[i % ALIVE], size);
  }
  for (int i = 0; i < ALIVE; i++) free(alive[i]);
  return NULL;
}

int main(int argc, char** argv) {
  threads = thread_count(argc, argv);
  run_threads(threads, work);
  return 0;
}
