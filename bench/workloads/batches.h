/* What the two patterns after MicroQuill's benchmarks share: batches of blocks of 8 to 1,000 bytes, small ones most
 * often, of which parts are freed last-in first-out and parts in the order they were taken. */
#ifndef REHEAP_BENCH_BATCHES_H
#define REHEAP_BENCH_BATCHES_H

#include "workload.h"

enum { BATCH = 3000, MOST_SIZE = 1000 };

typedef struct {
  Marked* blocks[BATCH];
} Batch;

/* The smaller of three throws. */
static inline size_t batch_size(Random* random) {
  size_t least = MOST_SIZE;
  for (int i = 0; i < 3; i++) {
    size_t size = LEAST_MARKED + below(random, MOST_SIZE - LEAST_MARKED + 1);
    if (size < least) least = size;
  }
  return least;
}

static inline Batch* take_batch(Random* random) {
  Batch* batch = (Batch*)must(malloc(sizeof *batch));
  for (int i = 0; i < BATCH; i++) batch->blocks[i] = take_marked(batch_size(random));
  return batch;
}

/* The blocks from `from` on that are `step` apart, forwards or backwards. */
static inline void free_part(Batch* batch, int from, int step) {
  for (int i = from; 0 <= i && i < BATCH; i += step) {
    free_marked(batch->blocks[i]);
    batch->blocks[i] = NULL;
  }
}

/* The later half backwards, the rest forwards. */
static inline void free_batch(Batch* batch) {
  for (int i = BATCH - 1; batch && i >= BATCH / 2; i--) free_marked(batch->blocks[i]);
  for (int i = 0; batch && i < BATCH / 2; i++) free_marked(batch->blocks[i]);
  free(batch);
}

#endif
