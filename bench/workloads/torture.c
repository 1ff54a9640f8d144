/* After Cygwin's torture test of its malloc: random sizes up to 512 KiB skewed small, every page touched,
 * 6 % of the operations are reallocs, blocks live for a random while. */
#include "workload.h"

enum { SLOTS = 600, TOTAL_OPERATIONS = 2000000, REALLOC_PERCENT = 6 };

static int threads;

static void* resize(void* block, Random* random) {
  size_t size = skewed_size(random, 4, 19);
  block = must(realloc(block, size));
  touch_pages(block, size);
  return block;
}

static void* work(void* argument) {
  Random random = random_for((unsigned)(intptr_t)argument);
  void* slots[SLOTS] = {0};
  for (int i = 0; i < TOTAL_OPERATIONS / threads; i++) {
    size_t slot = below(&random, SLOTS);
    if (below(&random, 100) >= REALLOC_PERCENT) {
      free(slots[slot]);
      slots[slot] = NULL;
    }
    slots[slot] = resize(slots[slot], &random);
  }
  for (int i = 0; i < SLOTS; i++) free(slots[i]);
  return NULL;
}

int main(int argc, char** argv) {
  threads = thread_count(argc, argv);
  run_threads(threads, work);
  return 0;
}
