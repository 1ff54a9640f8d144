/* After mimalloc's stress test, a server at work: threads take blocks of powers of two in number, small ones most
 * often; some live long, some go to other threads through a common table. Threads have unequal work. After each
 * phase all of them end; blocks of the table survive into the next. */
#include <stdatomic.h>

#include "workload.h"

enum { PHASES = 20, TABLE = 2000, TOTAL_STEPS = 160000, KEEP = 2000, MOST_WORDS_BITS = 9 };

static _Atomic(Marked*) table[TABLE];
static int threads, phase;

typedef struct {
  Marked* kept[KEEP];
  Random random;
} Worker;

static Marked* take(Random* random) {
  size_t words = (size_t)1 << below(random, 6);
  if (below(random, 100) == 0) words <<= below(random, MOST_WORDS_BITS);
  return take_marked((words + below(random, words)) * sizeof(void*));
}

static void step(Worker* worker) {
  Random* random = &worker->random;
  size_t dice = below(random, 100);
  Marked** kept = &worker->kept[below(random, KEEP)];
  if (dice < 50) {
    free_marked(take(random));
  } else if (dice < 75) {
    free_marked(*kept);
    *kept = take(random);
  } else {
    *kept = atomic_exchange(&table[below(random, TABLE)], *kept);
  }
}

/* The first threads work up to twice as long as the last. */
static void* work(void* argument) {
  int number = (int)(intptr_t)argument;
  Worker* worker = must(calloc(1, sizeof *worker));
  worker->random = random_for((unsigned)(number + phase * MOST_THREADS));
  int steps = TOTAL_STEPS * 4 / threads;
  steps = steps * (2 * threads - number) / (2 * threads);
  for (int i = 0; i < steps; i++) step(worker);
  for (int i = 0; i < KEEP; i++) free_marked(worker->kept[i]);
  free(worker);
  return NULL;
}

int main(int argc, char** argv) {
  threads = thread_count(argc, argv);
  for (; phase < PHASES; phase++) {
    run_threads(threads, work);
    for (int i = phase % 2; i < TABLE; i += 2) free_marked(atomic_exchange(&table[i], NULL));
  }
  for (int i = 0; i < TABLE; i++) free_marked(table[i]);
  return 0;
}
