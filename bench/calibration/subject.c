/* What the planted library is tried on: each allocation comes with a known amount of work, and LIVE blocks are kept.
 *
 *   subject STEPS LIVE [WORK]
 *
 * A library that adds N units of work to an allocation makes it slower by N / WORK; beside 10000 units, malloc and the
 * writing of the block are nothing. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "work.h"

enum { USUAL_WORK = 10000, LEAST = 512, SPREAD = 1024 };

static unsigned long number(int argc, char** argv, int place, unsigned long otherwise) {
  return argc > place ? strtoul(argv[place], NULL, 10) : otherwise;
}

int main(int argc, char** argv) {
  unsigned long steps = number(argc, argv, 1, 0), live = number(argc, argv, 2, 0);
  unsigned units = (unsigned)number(argc, argv, 3, USUAL_WORK);
  if (!steps || !live) {
    fprintf(stderr, "usage: %s STEPS LIVE [WORK]\n", argv[0]);
    return 2;
  }
  char** kept = calloc(live, sizeof *kept);
  if (!kept) return 3;
  uint64_t random = 88172645463325252u;
  for (unsigned long i = 0; i < steps; i++) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    size_t size = LEAST + random % SPREAD;
    free(kept[i % live]);
    kept[i % live] = malloc(size);
    if (!kept[i % live]) return 3;
    memset(kept[i % live], 1, size);
    work(units);
  }
  return 0;
}
