/* After glibc's bench-malloc-simple: 25, 100, 400 and 1,600 blocks of one size are taken and then freed in the order
 * they were taken, over and over, for sizes from 16 bytes to 4 KiB. */
#include "workload.h"

enum { MOST_BLOCKS = 1600, TOTAL_BLOCKS = 60000 };

static const int counts[] = {25, 100, 400, MOST_BLOCKS};
static const size_t sizes[] = {16, 64, 128, 512, 1024, 4096};
static int threads;

static void take_and_free(size_t size, int count) {
  Marked* blocks[MOST_BLOCKS];
  for (int i = 0; i < count; i++) blocks[i] = take_marked(size);
  for (int i = 0; i < count; i++) free_marked(blocks[i]);
}

static void* work(void* argument) {
  (void)argument;
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
      for (int left = TOTAL_BLOCKS / threads; left > 0; left -= counts[c]) take_and_free(sizes[s], counts[c]);
  return NULL;
}

int main(int argc, char** argv) {
  threads = thread_count(argc, argv);
  run_threads(threads, work);
  return 0;
}
