/* After rpmalloc's benchmark: each thread frees and takes scattered runs of a large table of blocks of 16 bytes to
 * 16 KiB, hands a batch to the next thread in each turn and frees the one it was handed. */
#include <stdatomic.h>

#include "workload.h"

enum { SLOTS = 8192, BATCH = 512, RUN = 200, TOTAL_TURNS = 1600, LEAST_BITS = 5, MOST_BITS = 14 };

typedef struct {
  Marked* blocks[BATCH];
} Batch;

static _Atomic(Batch*) handed[MOST_THREADS];
static int threads;

static Marked* take(Random* random) { return take_touched(skewed_size(random, LEAST_BITS, MOST_BITS)); }

static void free_batch(Batch* batch) {
  for (int i = 0; batch && i < BATCH; i++) free_marked(batch->blocks[i]);
  free(batch);
}

static Batch* make_batch(Random* random) {
  Batch* batch = must(malloc(sizeof *batch));
  for (int i = 0; i < BATCH; i++) batch->blocks[i] = take(random);
  return batch;
}

static void replace_run(Marked** slots, Random* random) {
  size_t at = below(random, SLOTS), step = 1 + below(random, 7);
  for (int i = 0; i < RUN; i++) {
    size_t slot = (at + (size_t)i * step) % SLOTS;
    free_marked(slots[slot]);
    slots[slot] = take(random);
  }
}

static void* work(void* argument) {
  int number = (int)(intptr_t)argument;
  Random random = random_for((unsigned)number);
  Marked** slots = must(calloc(SLOTS, sizeof *slots));
  for (int turn = 0; turn < TOTAL_TURNS / threads; turn++) {
    replace_run(slots, &random);
    free_batch(atomic_exchange(&handed[(number + 1) % threads], make_batch(&random)));
    free_batch(atomic_exchange(&handed[number], NULL));
  }
  for (int i = 0; i < SLOTS; i++) free_marked(slots[i]);
  free(slots);
  return NULL;
}

int main(int argc, char** argv) {
  threads = thread_count(argc, argv);
  run_threads(threads, work);
  for (int i = 0; i < threads; i++) free_batch(handed[i]);
  return 0;
}
