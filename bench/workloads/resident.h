/* How much memory this process has at moments after its last call of the allocator, read without allocating. */
#ifndef REHEAP_BENCH_RESIDENT_H
#define REHEAP_BENCH_RESIDENT_H

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "workload.h"

/* Resident pages, and those of them that were given back by MADV_FREE: they count as resident until the kernel
 * needs them. */
typedef struct {
  long resident_kib, lazy_kib;
} Memory;

static inline long kib_of(const char* text, const char* name) {
  const char* line = strstr(text, name);
  if (!line) {
    fprintf(stderr, "/proc/self/smaps_rollup has no %s\n", name);
    exit(3);
  }
  return atol(line + strlen(name));
}

static inline Memory memory_now(void) {
  char text[PAGE];
  int file = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
  if (length < 0) {
    fprintf(stderr, "cannot read /proc/self/smaps_rollup\n");
    exit(3);
  }
  close(file);
  text[length] = 0;
  return (Memory){kib_of(text, "\nRss:"), kib_of(text, "\nLazyFree:")};
}

/* Prints "after_N_ms KIB" and "lazy_N_ms KIB" at each moment, counted from the call. */
static inline void watch_memory(const int* moments_ms, size_t count) {
  int slept_ms = 0;
  for (size_t i = 0; i < count; i++) {
    usleep((useconds_t)(moments_ms[i] - slept_ms) * 1000);
    slept_ms = moments_ms[i];
    Memory now = memory_now();
    printf("after_%d_ms %ld\nlazy_%d_ms %ld\n", slept_ms, now.resident_kib, slept_ms, now.lazy_kib);
  }
}

#endif
