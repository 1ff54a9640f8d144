/* What ended threads leave behind, as in mleak: short-lived threads one after another take blocks, free half of them
 * and end; whoever comes later frees the rest. Memory that went with a thread and is not used again adds up. */
#include "workload.h"

enum { TOTAL_LIVES = 2000, BLOCKS = 1000, LEAST_BITS = 4, MOST_BITS = 11 };

static int threads;

static void* live(void* argument) {
  Random random = random_for((unsigned)(intptr_t)argument);
  Marked** blocks = must(malloc(BLOCKS * sizeof *blocks));
  for (int i = 0; i < BLOCKS; i++) blocks[i] = take_marked(skewed_size(&random, LEAST_BITS, MOST_BITS));
  for (int i = 0; i < BLOCKS; i += 2) free_marked(blocks[i]);
  return blocks;
}

static void free_rest(Marked** blocks) {
  for (int i = 1; blocks && i < BLOCKS; i += 2) free_marked(blocks[i]);
  free(blocks);
}

/* The rest of one life is freed when the next has ended. */
static void* line_of_lives(void* argument) {
  intptr_t number = (intptr_t)argument;
  Marked** left = NULL;
  for (int i = 0; i < TOTAL_LIVES / threads; i++) {
    void* result = NULL;
    pthread_join(start_thread(live, (void*)(number + (intptr_t)i * MOST_THREADS)), &result);
    free_rest(left);
    left = result;
  }
  free_rest(left);
  return NULL;
}

int main(int argc, char** argv) {
  threads = thread_count(argc, argv);
  run_threads(threads, line_of_lives);
  return 0;
}
