/* Buffers that grow by realloc, many at once and to different ends: rewards growing in place, and moving
 * pages instead of bytes. */
#include <string.h>

#include "workload.h"

enum { BUFFERS = 16, TOTAL_ROUNDS = 200 };

static int threads;

static size_t grown(size_t size) { return size + size / 2 + 16; }

static void one_round(Random* random) {
  char* buffers[BUFFERS] = {0};
  size_t sizes[BUFFERS] = {0};
  size_t ends[BUFFERS];
  for (int i = 0; i < BUFFERS; i++) ends[i] = skewed_size(random, 8, 22);
  for (int growing = BUFFERS; growing > 0;) {
    growing = 0;
    for (int i = 0; i < BUFFERS; i++) {
      if (sizes[i] >= ends[i]) continue;
      size_t size = grown(sizes[i]);
      buffers[i] = must(realloc(buffers[i], size));
      memset(buffers[i] + sizes[i], 1, size - sizes[i]);
      sizes[i] = size;
      growing++;
    }
  }
  for (int i = 0; i < BUFFERS; i++) free(buffers[i]);
}

static void* work(void* argument) {
  Random random = random_for((unsigned)(intptr_t)argument);
  for (int i = 0; i < TOTAL_ROUNDS / threads; i++) one_round(&random);
  return NULL;
}

int main(int argc, char** argv) {
  threads = thread_count(argc, argv);
  run_threads(threads, work);
  return 0;
}
