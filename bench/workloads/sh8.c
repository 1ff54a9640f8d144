/* The pattern of sh8bench: as in sh6, and what is left of each batch is freed by another thread, through a place
 * that all threads put batches in and take them from. */
#include <stdatomic.h>

#include "batches.h"

enum { PLACES = 16, TOTAL_BATCHES = 800 };

static _Atomic(Batch*) places[PLACES];
static int threads;

static void* work(void* argument) {
  Random random = random_for((unsigned)(intptr_t)argument);
  for (int i = 0; i < TOTAL_BATCHES / threads; i++) {
    Batch* batch = take_batch(&random);
    free_part(batch, BATCH - 1, -3);
    free_batch(atomic_exchange(&places[below(&random, PLACES)], batch));
  }
  return NULL;
}

int main(int argc, char** argv) {
  threads = thread_count(argc, argv);
  run_threads(threads, work);
  for (int i = 0; i < PLACES; i++) free_batch(places[i]);
  return 0;
}
