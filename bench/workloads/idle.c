/* Threads take a lot of memory in small blocks, all of it is freed, and the process sleeps. How much stays
 * resident, and for how long?
 *
 *   idle own|cross|sleeper|dead THREADS MEGABYTES
 *
 *   own      each thread frees what it took, and sleeps
 *   cross    each thread frees what its neighbour took, and sleeps
 *   sleeper  the threads sleep from the moment they took it; the main thread frees everything
 *   dead     the threads have ended before the main thread frees everything
 *
 * Prints the resident KiB before, when all is taken, and at the moments listed in `moments_ms` after the
 * last free: one line each, "NAME KIB". */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "workload.h"

enum { LISTS = 64, MOST_BITS = 9, LEAST_BITS = 5 };

/* The lists run through the blocks themselves, so that they hold no memory of their own. Several lists, so
 * that blocks are not freed in the order they were taken. */
typedef struct Block {
  struct Block* next;
} Block;

typedef struct {
  Block* lists[LISTS];
} Holding;

static const int moments_ms[] = {0, 500, 1000, 2000, 3000};

static Holding holdings[MOST_THREADS];
static int threads;
static size_t bytes_per_thread;
static const char* mode;
static pthread_barrier_t all_taken, measured, all_freed;

/* Takes no memory: what is measured is to be idle. */
static long resident_kib(void) {
  long pages = 0;
  char text[128] = "";
  int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0 || read(file, text, sizeof text - 1) < 1 || sscanf(text, "%*s %ld", &pages) != 1) {
    fprintf(stderr, "cannot read /proc/self/statm\n");
    exit(3);
  }
  close(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void take(unsigned number) {
  Random random = random_for(number);
  size_t taken = 0;
  while (taken < bytes_per_thread) {
    size_t size = skewed_size(&random, LEAST_BITS, MOST_BITS);
    Block* block = must(malloc(size));
    memset(block, 1, size);
    Block** list = &holdings[number].lists[below(&random, LISTS)];
    block->next = *list;
    *list = block;
    taken += size;
  }
}

static void free_holding(int number) {
  for (int i = 0; i < LISTS; i++)
    for (Block* block = holdings[number].lists[i]; block;) {
      Block* next = block->next;
      free(block);
      block = next;
    }
}

static void sleep_for_ever(void) {
  for (;;) pause();
}

static void* live(void* argument) {
  int number = (int)(intptr_t)argument;
  take((unsigned)number);
  pthread_barrier_wait(&all_taken);
  if (strcmp(mode, "dead") == 0) return NULL;
  pthread_barrier_wait(&measured);
  if (strcmp(mode, "own") == 0) free_holding(number);
  if (strcmp(mode, "cross") == 0) free_holding((number + 1) % threads);
  pthread_barrier_wait(&all_freed);
  sleep_for_ever();
  return NULL;
}

static void watch(void) {
  int slept_ms = 0;
  for (size_t i = 0; i < sizeof moments_ms / sizeof *moments_ms; i++) {
    usleep((useconds_t)(moments_ms[i] - slept_ms) * 1000);
    slept_ms = moments_ms[i];
    printf("after_%d_ms %ld\n", slept_ms, resident_kib());
  }
}

static void free_all(void) {
  for (int i = 0; i < threads; i++) free_holding(i);
}

static void run(void) {
  pthread_t started[MOST_THREADS];
  int dead = strcmp(mode, "dead") == 0;
  printf("before %ld\n", resident_kib());
  for (int i = 0; i < threads; i++) started[i] = start_thread(live, (void*)(intptr_t)i);
  pthread_barrier_wait(&all_taken);
  printf("full %ld\n", resident_kib());
  if (dead)
    for (int i = 0; i < threads; i++) pthread_join(started[i], NULL);
  else
    pthread_barrier_wait(&measured);
  if (dead || strcmp(mode, "sleeper") == 0) free_all();
  if (!dead) pthread_barrier_wait(&all_freed);
  watch();
}

static int known_mode(void) {
  const char* modes[] = {"own", "cross", "sleeper", "dead"};
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
    if (strcmp(mode, modes[i]) == 0) return 1;
  return 0;
}

int main(int argc, char** argv) {
  mode = argc == 4 ? argv[1] : "";
  threads = argc == 4 ? atoi(argv[2]) : 0;
  long megabytes = argc == 4 ? atol(argv[3]) : 0;
  if (!known_mode() || threads < 1 || threads > MOST_THREADS || megabytes < 1) {
    fprintf(stderr, "usage: idle own|cross|sleeper|dead THREADS MEGABYTES\n");
    return 2;
  }
  bytes_per_thread = (size_t)megabytes * 1000000 / (size_t)threads;
  pthread_barrier_init(&all_taken, NULL, (unsigned)threads + 1);
  pthread_barrier_init(&measured, NULL, (unsigned)threads + 1);
  pthread_barrier_init(&all_freed, NULL, (unsigned)threads + 1);
  run();
  fflush(stdout);
  _exit(0);
}
