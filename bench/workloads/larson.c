/* A server after Larson and Krishnan: requests replace blocks at random, and worker threads come and go,
 * leaving their live blocks to the next worker, who frees them. */
#include "workload.h"

enum { SLOTS = 1000, GENERATIONS = 60, TOTAL_REPLACEMENTS = 30000000 };

typedef struct {
  void* slots[SLOTS];
  Random random;
  int replacements;
} Desk;

static Desk desks[MOST_THREADS];
static int threads;

static void replace(Desk* desk) {
  size_t slot = below(&desk->random, SLOTS);
  size_t size = 8 + below(&desk->random, 500);
  free(desk->slots[slot]);
  char* block = must(malloc(size));
  block[0] = block[size - 1] = 1;
  desk->slots[slot] = block;
}

static void* generation(void* argument) {
  Desk* desk = argument;
  for (int i = 0; i < desk->replacements; i++) replace(desk);
  return NULL;
}

/* One line of workers, each a new thread at the desk the last one left. */
static void* line_of_workers(void* argument) {
  int number = (int)(intptr_t)argument;
  Desk* desk = &desks[number];
  desk->random = random_for((unsigned)number);
  desk->replacements = TOTAL_REPLACEMENTS / threads / GENERATIONS;
  for (int i = 0; i < GENERATIONS; i++) pthread_join(start_thread(generation, desk), NULL);
  return NULL;
}

int main(int argc, char** argv) {
  threads = thread_count(argc, argv);
  run_threads(threads, line_of_workers);
  return 0;
}
