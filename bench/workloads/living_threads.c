/* Many threads that live at once: each takes blocks of several sizes, hands half of them to the next thread and waits;
 * when all are there, each frees what it has and was given, takes as many again, frees those and ends.
 *
 *   living_threads THREADS
 *
 * Prints how many nanoseconds a thread took, on average, to come and to go. */
#define _GNU_SOURCE
#include <inttypes.h>

#include "ticks.h"
#include "workload.h"

enum { BLOCKS = 32, LEAST_BITS = 4, MOST_BITS = 12, STACK = 64 << 10 };

typedef struct {
  Marked *kept[BLOCKS / 2], *given[BLOCKS / 2];  // given by the thread before
} Desk;

static Desk* desks;
static long threads, waiting;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t came = PTHREAD_COND_INITIALIZER, leave = PTHREAD_COND_INITIALIZER;

static void take(Random* random, Marked** blocks) {
  for (int i = 0; i < BLOCKS / 2; i++) blocks[i] = take_marked(skewed_size(random, LEAST_BITS, MOST_BITS));
}

static void put(Marked** blocks) {
  for (int i = 0; i < BLOCKS / 2; i++) free_marked(blocks[i]);
}

static void wait_for_all(void) {
  pthread_mutex_lock(&lock);
  waiting++;
  pthread_cond_signal(&came);
  while (waiting <= threads) pthread_cond_wait(&leave, &lock);
  pthread_mutex_unlock(&lock);
}

static void* live(void* argument) {
  long number = (long)(intptr_t)argument;
  Random random = random_for((unsigned)number);
  Desk* own = &desks[number];
  take(&random, own->kept);
  take(&random, desks[(number + 1) % threads].given);
  wait_for_all();
  put(own->given);
  put(own->kept);
  take(&random, own->kept);
  put(own->kept);
  return NULL;
}

static void let_all_leave(void) {
  pthread_mutex_lock(&lock);
  waiting = threads + 1;
  pthread_cond_broadcast(&leave);
  pthread_mutex_unlock(&lock);
}

static void set_stacks(size_t size) {
  pthread_attr_t wanted;
  if (pthread_attr_init(&wanted) != 0 || pthread_attr_setstacksize(&wanted, size) != 0 ||
      pthread_setattr_default_np(&wanted) != 0) {
    fprintf(stderr, "cannot set the size of stacks\n");
    exit(3);
  }
}

int main(int argc, char** argv) {
  threads = argc == 2 ? atol(argv[1]) : 0;
  if (threads < 1) {
    fprintf(stderr, "usage: living_threads THREADS\n");
    return 2;
  }
  desks = must(calloc((size_t)threads, sizeof *desks));
  pthread_t* all = must(malloc((size_t)threads * sizeof *all));
  set_stacks(STACK);
  uint64_t start = now_ns();
  for (long i = 0; i < threads; i++) all[i] = start_thread(live, (void*)(intptr_t)i);
  pthread_mutex_lock(&lock);
  while (waiting < threads) pthread_cond_wait(&came, &lock);
  pthread_mutex_unlock(&lock);
  uint64_t here = now_ns();
  let_all_leave();
  for (long i = 0; i < threads; i++) pthread_join(all[i], NULL);
  uint64_t gone = now_ns(), each = (uint64_t)threads;
  printf("%" PRIu64 " %" PRIu64 "\n", (here - start) / each, (gone - here) / each);
  free(all);
  free(desks);
  return 0;
}
