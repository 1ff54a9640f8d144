/* A clock that is read within nanoseconds, and a histogram of what it measured. */
#ifndef REHEAP_BENCH_TICKS_H
#define REHEAP_BENCH_TICKS_H

#include <stdint.h>
#include <time.h>

static inline uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* The fences keep what is measured between both readings. */
#ifdef __x86_64__
static inline uint64_t ticks_before(void) {
  __builtin_ia32_lfence();
  uint64_t ticks = __builtin_ia32_rdtsc();
  __builtin_ia32_lfence();
  return ticks;
}

static inline uint64_t ticks_after(void) {
  unsigned processor;
  uint64_t ticks = __builtin_ia32_rdtscp(&processor);
  __builtin_ia32_lfence();
  return ticks;
}
#else
static inline uint64_t ticks_before(void) { return now_ns(); }
static inline uint64_t ticks_after(void) { return now_ns(); }
#endif

/* Log-linear: each power of two in equal parts, so a value is known to 1/PARTS of itself. Never allocates. */
enum { PART_BITS = 5, PARTS = 1 << PART_BITS, BUCKETS = (64 - PART_BITS + 1) * PARTS };

typedef struct {
  uint64_t counts[BUCKETS], longest;
} Histogram;

static inline unsigned bucket_of(uint64_t value) {
  if (value < PARTS) return (unsigned)value;
  unsigned shift = 63u - (unsigned)__builtin_clzll(value) - PART_BITS;
  return (shift + 1) * PARTS + (unsigned)(value >> shift) - PARTS;
}

/* The least value of a bucket. */
static inline uint64_t bucket_start(unsigned bucket) {
  if (bucket < PARTS) return bucket;
  return (uint64_t)(PARTS + bucket % PARTS) << (bucket / PARTS - 1);
}

static inline void count_value(Histogram* histogram, uint64_t value) {
  histogram->counts[bucket_of(value)]++;
  if (value > histogram->longest) histogram->longest = value;
}

static inline void add_histogram(Histogram* sum, const Histogram* other) {
  for (unsigned i = 0; i < BUCKETS; i++) sum->counts[i] += other->counts[i];
  if (other->longest > sum->longest) sum->longest = other->longest;
}

#endif
