/* False sharing handed out, as in cache-scratch: each thread frees a small block that another thread made
 * beside others, takes one of the same size and writes to it. An allocator that gives two threads parts of
 * one cache line makes them slow each other down. */
#include "workload.h"

enum { BLOCK = 8, TOTAL_TURNS = 400000, WRITES = 2000 };

static void* given[MOST_THREADS];
static int threads;

static void write_often(volatile char* block) {
  for (int i = 0; i < WRITES; i++) block[i % BLOCK] = (char)(block[i % BLOCK] + 1);
}

static void* scratch(void* argument) {
  free(given[(intptr_t)argument]);
  for (int i = 0; i < TOTAL_TURNS / threads; i++) {
    char* block = must(malloc(BLOCK));
    write_often(block);
    free(block);
  }
  return NULL;
}

int main(int argc, char** argv) {
  threads = thread_count(argc, argv);
  for (int i = 0; i < threads; i++) given[i] = must(malloc(BLOCK));
  run_threads(threads, scratch);
  return 0;
}
