/* Threads that keep blocks of their own and hand some to the next thread, which frees them.
 *
 *   sixteen STEPS [THREADS] */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum {
  USUAL_THREADS = 16,
  MOST_THREADS = 64,
  KEPT = 2000,
  BOXES = 2048,
  HAND_OVER_EVERY = 8,
  LEAST_BITS = 4,
  MOST_BITS = 12
};

static _Atomic(char*) boxes[MOST_THREADS][BOXES];
static unsigned threads = USUAL_THREADS;
static unsigned long steps;

static uint64_t next_random(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

/* Each power of two as likely as the next. */
static size_t some_size(uint64_t random) {
  size_t top = (size_t)1 << (LEAST_BITS + random % (MOST_BITS - LEAST_BITS + 1));
  return top / 2 + (random >> 32) % (top / 2) + 1;
}

static char* make(size_t size) {
  char* block = malloc(size);
  if (!block) exit(3);
  block[0] = block[size - 1] = 1;
  return block;
}

static void* work(void* argument) {
  unsigned self = (unsigned)(uintptr_t)argument, next = (self + 1) % threads;
  uint64_t random = 0x9E3779B97F4A7C15u * (self + 1);
  char** kept = calloc(KEPT, sizeof *kept);
  if (!kept) exit(3);
  for (unsigned long i = 0; i < steps; i++) {
    uint64_t now = next_random(&random);
    char* block = make(some_size(now));
    if (i % HAND_OVER_EVERY == 0) {
      size_t box = (now >> 20) % BOXES;
      free(atomic_exchange(&boxes[next][box], block));
      free(atomic_exchange(&boxes[self][box], NULL));
    } else {
      char** slot = &kept[(now >> 20) % KEPT];
      free(*slot);
      *slot = block;
    }
  }
  for (unsigned i = 0; i < KEPT; i++) free(kept[i]);
  free(kept);
  return NULL;
}

int main(int argc, char** argv) {
  steps = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
  if (argc > 2) threads = (unsigned)strtoul(argv[2], NULL, 10);
  if (!steps || threads < 1 || threads > MOST_THREADS) {
    fprintf(stderr, "usage: %s STEPS [THREADS, 1 to %d]\n", argv[0], MOST_THREADS);
    return 2;
  }
  pthread_t running[MOST_THREADS];
  for (unsigned i = 0; i < threads; i++)
    if (pthread_create(&running[i], NULL, work, (void*)(uintptr_t)i)) return 3;
  for (unsigned i = 0; i < threads; i++) pthread_join(running[i], NULL);
  for (unsigned i = 0; i < threads; i++)
    for (unsigned box = 0; box < BOXES; box++) free(boxes[i][box]);
  return 0;
}
