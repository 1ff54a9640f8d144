/* What the workloads share: arguments, random numbers, threads, touching memory, blocks that are checked. */
#ifndef REHEAP_BENCH_WORKLOAD_H
#define REHEAP_BENCH_WORKLOAD_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_THREADS = 64, PAGE = 4096 };

/* One generator a thread, seeded by the thread's number: every run does the same. */
typedef struct {
  uint64_t state;
} Random;

static inline Random random_for(unsigned thread) {
  Random random = {0x9E3779B97F4A7C15ull * (thread + 1)};
  return random;
}

static inline uint64_t next_random(Random* random) {
  uint64_t x = random->state;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return random->state = x;
}

static inline size_t below(Random* random, size_t limit) { return (size_t)(next_random(random) >> 16) % limit; }

/* 1 to 2^most_bits bytes: each power of two as likely as the next, so small ones most often. */
static inline size_t skewed_size(Random* random, unsigned least_bits, unsigned most_bits) {
  size_t top = (size_t)1 << (least_bits + below(random, most_bits - least_bits + 1));
  return top / 2 + 1 + below(random, top / 2);
}

static inline void* must(void* block) {
  if (!block) {
    fprintf(stderr, "out of memory\n");
    exit(3);
  }
  return block;
}

/* Writes one byte of every page, as a program that uses its memory does. */
static inline void touch_pages(void* block, size_t size) {
  volatile char* bytes = (volatile char*)block;
  for (size_t at = 0; at < size; at += PAGE) bytes[at] = 1;
  bytes[size - 1] = 1;
}

/* A block that knows its size and has its mark at both ends until it is freed: one that was handed out twice, was
 * written by somebody else or was lost ends the program. */
typedef struct {
  uint32_t size;
  unsigned char mark;
} Marked;

enum { LEAST_MARKED = sizeof(Marked) };

static inline unsigned char mark_of(const void* block) { return (unsigned char)(((uintptr_t)block >> 3) % 255 + 1); }

static inline Marked* mark(void* bytes, size_t size) {
  Marked* block = (Marked*)bytes;
  block->size = (uint32_t)size;
  block->mark = ((unsigned char*)bytes)[size - 1] = mark_of(block);
  return block;
}

static inline void unmark(Marked* block) {
  unsigned char* last = (unsigned char*)block + block->size - 1;
  if (block->mark != mark_of(block) || *last != block->mark) {
    fprintf(stderr, "a block lost its contents\n");
    exit(4);
  }
  block->mark = *last = 0;
}

static inline Marked* take_marked(size_t size) { return mark(must(malloc(size)), size); }

/* With a byte of every page written, between the marks. */
static inline Marked* take_touched(size_t size) {
  Marked* block = take_marked(size);
  for (size_t at = PAGE; at + 1 < size; at += PAGE) ((volatile char*)block)[at] = 1;
  return block;
}

static inline void free_marked(Marked* block) {
  if (block) unmark(block);
  free(block);
}

typedef void* (*ThreadFunction)(void*);

static inline pthread_t start_thread(ThreadFunction function, void* argument) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, function, argument) != 0) {
    fprintf(stderr, "cannot create a thread\n");
    exit(3);
  }
  return thread;
}

/* Runs function(0) to function(count-1), each on a thread of its own. */
static inline void run_threads(int count, ThreadFunction function) {
  pthread_t threads[MOST_THREADS];
  for (int i = 0; i < count; i++) threads[i] = start_thread(function, (void*)(intptr_t)i);
  for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

/* The number of threads, the workload's only argument. */
static inline int thread_count(int argc, char** argv) {
  int count = argc == 2 ? atoi(argv[1]) : 0;
  if (count < 1 || count > MOST_THREADS) {
    fprintf(stderr, "usage: %s THREADS (1 to %d)\n", argv[0], MOST_THREADS);
    exit(2);
  }
  return count;
}

#endif
