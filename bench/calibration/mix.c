/* Does nothing but malloc and free: frees a block chosen by chance and allocates another, seven in ten small, few above
 * 2 KB.
 *
 *   mix ROUNDS */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { KEPT = 4096 };

static uint64_t state = 88172645463325252u;

static unsigned next_random(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (unsigned)(state >> 20);
}

static size_t some_size(void) {
  unsigned kind = next_random() % 100;
  if (kind < 70) return 8 + next_random() % 120;
  return next_random() % (kind < 97 ? 2000 : 20000);
}

int main(int argc, char** argv) {
  static void* blocks[KEPT];
  if (argc != 2) {
    fprintf(stderr, "usage: mix ROUNDS\n");
    return 2;
  }
  for (long left = atol(argv[1]); left > 0; left--) {
    unsigned place = next_random() % KEPT;
    free(blocks[place]);
    blocks[place] = malloc(some_size());
  }
  return 0;
}
