/* Blocks are made by one thread and freed by another, in bundles, as in xmalloc-test. Half of the threads
 * produce and half consume; a single thread does both in turn. */
#include "workload.h"

enum { BUNDLE = 120, TOTAL_BUNDLES = 120000, MOST_WAITING = 200 };

typedef struct Bundle {
  struct Bundle* next;
  void* blocks[BUNDLE];
} Bundle;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static Bundle* waiting;
static int waiting_count;
static int left_to_make = TOTAL_BUNDLES;
static int left_to_take = TOTAL_BUNDLES;

static Bundle* make_bundle(Random* random) {
  Bundle* bundle = must(malloc(sizeof *bundle));
  for (int i = 0; i < BUNDLE; i++) {
    size_t size = skewed_size(random, 4, 9);
    char* block = must(malloc(size));
    block[0] = block[size - 1] = 1;
    bundle->blocks[i] = block;
  }
  return bundle;
}

static void free_bundle(Bundle* bundle) {
  for (int i = 0; i < BUNDLE; i++) free(bundle->blocks[i]);
  free(bundle);
}

static int take_ticket(int* left) {
  pthread_mutex_lock(&lock);
  int got = *left > 0;
  *left -= got;
  pthread_mutex_unlock(&lock);
  return got;
}

static void hand_over(Bundle* bundle) {
  pthread_mutex_lock(&lock);
  while (waiting_count == MOST_WAITING) pthread_cond_wait(&changed, &lock);
  bundle->next = waiting;
  waiting = bundle;
  if (waiting_count++ == 0) pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

static Bundle* take_over(void) {
  pthread_mutex_lock(&lock);
  while (!waiting) pthread_cond_wait(&changed, &lock);
  Bundle* bundle = waiting;
  waiting = bundle->next;
  if (waiting_count-- == MOST_WAITING) pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return bundle;
}

static void* produce_or_consume(void* argument) {
  unsigned number = (unsigned)(intptr_t)argument;
  Random random = random_for(number);
  if (number % 2 == 0)
    while (take_ticket(&left_to_make)) hand_over(make_bundle(&random));
  else
    while (take_ticket(&left_to_take)) free_bundle(take_over());
  return NULL;
}

static void alone(void) {
  Random random = random_for(0);
  for (int i = 0; i < TOTAL_BUNDLES; i++) free_bundle(make_bundle(&random));
}

int main(int argc, char** argv) {
  int threads = thread_count(argc, argv);
  if (threads == 1)
    alone();
  else
    run_threads(threads & ~1, produce_or_consume);
  return 0;
}
