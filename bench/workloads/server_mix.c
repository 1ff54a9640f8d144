/* A server for days: what it caches lives long, its sessions at random, its requests shortly. Each day the load rises
 * and falls, and many blocks are of sizes that no other day has. One block in sixteen is freed by the next thread.
 *
 *   server_mix THREADS MILLIONS    calls of malloc and free together, of all threads
 *
 * Prints lines "NAME KIB": the peaks of what is live and of resident memory, and their means of each day. */
#include <stdatomic.h>

#include "resident.h"

enum {
  DAYS = 10,
  HOURS = 24,
  CACHED = 8000,
  SESSIONS = 24000,
  REQUEST = 40,
  LEAST_BITS = 4,
  MOST_BITS = 12,
  LARGE_ONE_IN = 4000,
  HANDED = 256
};

static const unsigned sizes_of_day[DAYS] = {24, 1500, 200, 6000, 60, 400, 3000, 100, 900, 40};

typedef struct {
  Marked* blocks[HANDED];
  int count;
} Handed;

typedef struct {
  Random random;
  Marked *cached[CACHED], *sessions[SESSIONS];
  Handed* handed;
  size_t taken, freed; /* bytes */
  long left;           /* operations of this hour */
} Worker;

static Worker* workers[MOST_THREADS];
static _Atomic(Handed*) inboxes[MOST_THREADS];
static pthread_barrier_t hour_ends, hour_begins;
static int threads;
static long operations_an_hour;

static size_t size_on(Worker* own, int day) {
  size_t which = below(&own->random, LARGE_ONE_IN);
  if (which == 0) return skewed_size(&own->random, 16, 19);
  if (which % 3 == 0) return sizes_of_day[day] * (9 + below(&own->random, 3)) / 10;
  return skewed_size(&own->random, LEAST_BITS, MOST_BITS);
}

static Marked* take(Worker* own, int day) {
  Marked* block = take_touched(size_on(own, day));
  own->taken += block->size;
  own->left--;
  return block;
}

static void drop(Worker* own, Marked* block) {
  if (!block) return;
  own->freed += block->size;
  own->left--;
  free_marked(block);
}

static void drop_handed(Worker* own, Handed* handed) {
  for (int i = 0; handed && i < handed->count; i++) drop(own, handed->blocks[i]);
  free(handed);
}

/* One in sixteen goes to the next thread, many at a time. */
static void drop_somewhere(Worker* own, Marked* block, int number) {
  if (!block || below(&own->random, 16) != 0) {
    drop(own, block);
    return;
  }
  if (!own->handed) own->handed = (Handed*)must(calloc(1, sizeof *own->handed));
  own->handed->blocks[own->handed->count++] = block;
  if (own->handed->count < HANDED) return;
  drop_handed(own, atomic_exchange(&inboxes[(number + 1) % threads], own->handed));
  own->handed = NULL;
}

/* More by day than by night. */
static int sessions_at(int hour) {
  int from_noon = hour < HOURS / 2 ? HOURS / 2 - hour : hour - HOURS / 2;
  return SESSIONS - SESSIONS * 3 / 4 * from_noon / (HOURS / 2);
}

static void serve(Worker* own, int number, int day, int open) {
  size_t session = below(&own->random, (size_t)open);
  drop_somewhere(own, own->sessions[session], number);
  own->sessions[session] = take(own, day);
  Marked* request[REQUEST];
  for (int i = 0; i < REQUEST; i++) request[i] = take(own, day);
  for (int i = REQUEST; i-- > 0;) drop(own, request[i]);
  if (below(&own->random, 64) == 0) {
    size_t at = below(&own->random, CACHED);
    drop_somewhere(own, own->cached[at], number);
    own->cached[at] = take(own, day);
  }
}

static void live_for_an_hour(Worker* own, int number, int day, int hour) {
  own->left = operations_an_hour;
  int open = sessions_at(hour);
  for (int i = open; i < SESSIONS; i++) {
    drop(own, own->sessions[i]);
    own->sessions[i] = NULL;
  }
  while (own->left > 0) serve(own, number, day, open);
  drop_handed(own, atomic_exchange(&inboxes[number], NULL));
}

static void* work(void* argument) {
  int number = (int)(intptr_t)argument;
  Worker* own = workers[number];
  for (int day = 0; day < DAYS; day++)
    for (int hour = 0; hour < HOURS; hour++) {
      live_for_an_hour(own, number, day, hour);
      pthread_barrier_wait(&hour_ends);
      pthread_barrier_wait(&hour_begins);
    }
  return NULL;
}

static size_t live_kib(void) {
  size_t bytes = 0;
  for (int i = 0; i < threads; i++) bytes += workers[i]->taken - workers[i]->freed;
  return bytes / 1024;
}

static void watch(void) {
  size_t live_peak = 0, resident_peak = 0;
  for (int day = 0; day < DAYS; day++) {
    size_t live_sum = 0, resident_sum = 0;
    for (int hour = 0; hour < HOURS; hour++) {
      pthread_barrier_wait(&hour_ends);
      size_t live = live_kib(), resident = (size_t)memory_now().resident_kib;
      live_sum += live;
      resident_sum += resident;
      if (live > live_peak) live_peak = live;
      if (resident > resident_peak) resident_peak = resident;
      pthread_barrier_wait(&hour_begins);
    }
    printf("live_%d %zu\nresident_%d %zu\n", day + 1, live_sum / HOURS, day + 1, resident_sum / HOURS);
  }
  printf("live_peak %zu\nresident_peak %zu\n", live_peak, resident_peak);
}

int main(int argc, char** argv) {
  threads = argc == 3 ? atoi(argv[1]) : 0;
  long millions = argc == 3 ? atol(argv[2]) : 0;
  if (threads < 1 || threads > MOST_THREADS || millions < 1) {
    fprintf(stderr, "usage: %s THREADS (1 to %d) MILLIONS (1 or more)\n", argv[0], MOST_THREADS);
    return 2;
  }
  operations_an_hour = millions * 1000000 / (threads * DAYS * HOURS);
  pthread_barrier_init(&hour_ends, NULL, (unsigned)threads + 1);
  pthread_barrier_init(&hour_begins, NULL, (unsigned)threads + 1);
  for (int i = 0; i < threads; i++) {
    workers[i] = (Worker*)must(calloc(1, sizeof(Worker)));
    workers[i]->random = random_for((unsigned)i);
  }
  pthread_t running[MOST_THREADS];
  for (int i = 0; i < threads; i++) running[i] = start_thread(work, (void*)(intptr_t)i);
  watch();
  for (int i = 0; i < threads; i++) pthread_join(running[i], NULL);
  return 0;
}
