/* What the two programs about survivors share: a few blocks of many stay alive, the process sleeps, and its memory
 * is read at once, after 2 s and after 10 s.
 *
 * THREADS: 0 is the main thread alone, in a process that makes no thread; otherwise so many threads share the work
 * and then sleep, alive. Prints lines "NAME KIB". */
#ifndef REHEAP_BENCH_SURVIVORS_H
#define REHEAP_BENCH_SURVIVORS_H

#include "resident.h"

/* Lists run through the blocks themselves, so that they hold no memory of their own. */
typedef struct Block {
  struct Block* next;
  uint32_t size;
  unsigned char stamp, bytes[];
} Block;

typedef struct {
  Block* survivors;
  size_t live_bytes;
} Holding;

typedef void (*Leave)(Holding* holding, unsigned number, unsigned parts);

static const int moments_ms[] = {0, 2000, 10000};

static Holding holdings[MOST_THREADS];
static unsigned parts;
static Leave leave_survivors;
static pthread_barrier_t finished;

static inline Block* take_block(size_t size, unsigned char stamp) {
  Block* block = (Block*)must(malloc(size));
  block->size = (uint32_t)size;
  block->stamp = stamp;
  memset(block->bytes, stamp, size - offsetof(Block, bytes));
  return block;
}

static inline void check_block(const Block* block) {
  for (size_t i = 0; i < block->size - offsetof(Block, bytes); i++)
    if (block->bytes[i] != block->stamp) {
      fprintf(stderr, "a block of %u bytes lost its contents\n", block->size);
      exit(4);
    }
}

static inline void survive(Holding* holding, Block* block) {
  block->next = holding->survivors;
  holding->survivors = block;
  holding->live_bytes += block->size;
}

static inline void* worker(void* argument) {
  unsigned number = (unsigned)(intptr_t)argument;
  leave_survivors(&holdings[number], number, parts);
  pthread_barrier_wait(&finished);
  for (;;) pause();
  return NULL;
}

static inline void on_threads(unsigned threads) {
  pthread_barrier_init(&finished, NULL, threads + 1);
  for (unsigned i = 0; i < threads; i++) start_thread(worker, (void*)(intptr_t)i);
  pthread_barrier_wait(&finished);
}

static inline size_t check_survivors(void) {
  size_t live_bytes = 0;
  for (unsigned i = 0; i < parts; i++) {
    live_bytes += holdings[i].live_bytes;
    for (const Block* block = holdings[i].survivors; block; block = block->next) check_block(block);
  }
  return live_bytes;
}

/* Runs `leave` for each part of the work, then watches. Never returns: the exit frees nothing. */
static inline int watch_survivors(int argc, char** argv, Leave leave) {
  int threads = argc == 2 ? atoi(argv[1]) : -1;
  if (threads < 0 || threads > MOST_THREADS) {
    fprintf(stderr, "usage: %s THREADS (0 to %d)\n", argv[0], MOST_THREADS);
    return 2;
  }
  leave_survivors = leave;
  parts = threads == 0 ? 1 : (unsigned)threads;
  printf("before %ld\n", memory_now().resident_kib);
  if (threads == 0)
    leave(&holdings[0], 0, 1);
  else
    on_threads(parts);
  watch_memory(moments_ms, sizeof moments_ms / sizeof *moments_ms);
  printf("live %zu\n", check_survivors() / 1024);
  fflush(stdout);
  _exit(0);
}

#endif
