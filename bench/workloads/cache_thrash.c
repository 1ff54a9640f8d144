/* False sharing made by the allocator itself, as in cache-thrash: all threads take a small block at the same time and
 * write to it often. Blocks of two threads in one cache line make them slow each other down. (cache_scratch: the
 * blocks were made by one thread, and are freed by others.) */
#include "workload.h"

enum { BLOCK = 8, TOTAL_TURNS = 400000, WRITES = 1000 };

static int threads;

static void* thrash(void* argument) {
  (void)argument;
  for (int i = 0; i < TOTAL_TURNS / threads; i++) {
    Marked* block = take_marked(BLOCK);
    volatile char* bytes = (volatile char*)block + sizeof *block - 3; /* behind the mark, before the last byte */
    for (int w = 0; w < WRITES; w++) bytes[w % 2] = (char)(bytes[w % 2] + 1);
    free_marked(block);
  }
  return NULL;
}

int main(int argc, char** argv) {
  threads = thread_count(argc, argv);
  run_threads(threads, thrash);
  return 0;
}
