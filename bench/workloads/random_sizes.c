/* Each thread keeps a working set of its own and replaces random blocks of it by blocks of random sizes,
 * small ones most often, as in alloc-test. */
#include "workload.h"

enum { SLOTS = 1 << 15, TOTAL_REPLACEMENTS = 16000000 };

static int threads;

static void* work(void* argument) {
  Random random = random_for((unsigned)(intptr_t)argument);
  void** slots = must(calloc(SLOTS, sizeof *slots));
  for (int i = 0; i < TOTAL_REPLACEMENTS / threads; i++) {
    size_t slot = below(&random, SLOTS);
    size_t size = skewed_size(&random, 4, 10);
    free(slots[slot]);
    char* block = must(malloc(size));
    block[0] = block[size - 1] = 1;
    slots[slot] = block;
  }
  for (int i = 0; i < SLOTS; i++) free(slots[i]);
  free(slots);
  return NULL;
}

int main(int argc, char** argv) {
  threads = thread_count(argc, argv);
  run_threads(threads, work);
  return 0;
}
