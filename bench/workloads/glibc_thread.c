/* After glibc's bench-malloc-thread: each thread has 2,048 blocks and replaces random ones. Sizes run from 8 bytes to
 * 32 KiB, and one is the less likely the larger it is, by its square: most are tiny. */
#include "workload.h"

enum { SLOTS = 2048, TOTAL_REPLACEMENTS = 16000000, LEAST = LEAST_MARKED, MOST = 32768, DRAWN = 4096 };

static uint32_t drawn[DRAWN];
static int threads;

/* 1/size is spread evenly between 1/LEAST and 1/MOST. */
static void draw_sizes(void) {
  Random random = random_for(MOST_THREADS);
  for (int i = 0; i < DRAWN; i++) {
    double even = (double)below(&random, 1 << 20) / (1 << 20);
    drawn[i] = (uint32_t)(1 / (1.0 / LEAST - even * (1.0 / LEAST - 1.0 / MOST)));
  }
}

static void* work(void* argument) {
  Random random = random_for((unsigned)(intptr_t)argument);
  Marked* slots[SLOTS] = {0};
  for (int i = 0; i < TOTAL_REPLACEMENTS / threads; i++) {
    size_t slot = below(&random, SLOTS);
    free_marked(slots[slot]);
    slots[slot] = take_marked(drawn[below(&random, DRAWN)]);
  }
  for (int i = 0; i < SLOTS; i++) free_marked(slots[i]);
  return NULL;
}

int main(int argc, char** argv) {
  threads = thread_count(argc, argv);
  draw_sizes();
  run_threads(threads, work);
  return 0;
}
