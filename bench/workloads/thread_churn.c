/* The price of a thread's birth and death: threads that do a few operations and end, one after another.
 *
 *   thread_churn THREADS OPERATIONS
 *
 * Prints the nanoseconds a thread took, from its making to the return of join. */
#define _GNU_SOURCE
#include <inttypes.h>

#include "ticks.h"
#include "workload.h"

static long operations;

static void* live(void* argument) {
  (void)argument;
  for (long i = 0; i < operations; i++) free(must(malloc(16 + 48 * (size_t)(i % 8))));
  return NULL;
}

int main(int argc, char** argv) {
  long threads = argc == 3 ? atol(argv[1]) : 0;
  operations = argc == 3 ? atol(argv[2]) : 0;
  if (threads < 1 || operations < 0) {
    fprintf(stderr, "usage: thread_churn THREADS OPERATIONS\n");
    return 2;
  }
  uint64_t start = now_ns();
  for (long i = 0; i < threads; i++) pthread_join(start_thread(live, NULL), NULL);
  printf("%" PRIu64 "\n", (now_ns() - start) / (uint64_t)threads);
  return 0;
}
