/* The pattern of sh6bench: batches of small blocks, a third of each freed at once from its end, a third when a newer
 * batch is there, in the order it was taken, and the rest, backwards and forwards, a few batches later. */
#include "batches.h"

enum { ALIVE = 8, TOTAL_BATCHES = 1200 };

static int threads;

static void* work(void* argument) {
  Random random = random_for((unsigned)(intptr_t)argument);
  Batch* alive[ALIVE] = {0};
  for (int i = 0; i < TOTAL_BATCHES / threads; i++) {
    Batch* before = alive[(i + ALIVE - 1) % ALIVE];
    free_batch(alive[i % ALIVE]);
    alive[i % ALIVE] = take_batch(&random);
    free_part(alive[i % ALIVE], BATCH - 1, -3);
    if (before) free_part(before, 0, 3);
  }
  for (int i = 0; i < ALIVE; i++) free_batch(alive[i]);
  return NULL;
}

int main(int argc, char** argv) {
  threads = thread_count(argc, argv);
  run_threads(threads, work);
  return 0;
}
