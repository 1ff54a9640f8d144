/* Small blocks of one size, as many as keep several slabs of their class in use. */
#include "crime.h"

enum { BLOCKS = 2000, SIZE = 48 };

static char* blocks[BLOCKS];

static inline void take_blocks(void) {
  for (int at = 0; at < BLOCKS; ++at) blocks[at] = malloc(SIZE);
}

/* As many as make a full slab worth taking from again. */
static inline void free_some(void) {
  for (int at = 510; at < 540; ++at) free(blocks[at]);
}

/* Until every list of free blocks has been taken up again. */
static inline int survived_reuse(void) {
  void* volatile block = NULL;
  for (int at = 0; at < 4 * BLOCKS; ++at) block = malloc(SIZE);
  return survived(block);
}
