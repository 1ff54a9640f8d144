/* The price of a thread's birth and death: threads that do a few operations and end, one after another.
 *
 *   thread_churn THREADS OPERATIONS
 *
 * Prints the nanoseconds a thread took, from its making to the return of join. */
#define _GNU_SOURCE
#include <time.h>

#include "workload.h"

static long operations;

static void* live(void* argument) {
  (void)argument;
  for (long i = 0; i < operations; i++) free(must(malloc(16 + 48 * (size_t)(i % 8))));
  return NULL;
}

static long long now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(int argc, char** argv) {
  long threads = argc == 3 ? atol(argv[1]) : 0;
  operations = argc == 3 ? atol(argv[2]) : 0;
  if (threads < 1 || operations < 0) {
    fprintf(stderr, "usage: thread_churn THREADS OPERATIONS\n");
    return 2;
  }
  long long start = now_ns();
  for (long i = 0; i < threads; i++) pthread_join(start_thread(live, NULL), NULL);
  printf("%lld\n", (now_ns() - start) / threads);
  return 0;
}
