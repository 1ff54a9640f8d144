/* A few blocks keep many pages: phases of one size each take 64 MiB of blocks and free all but one in every 16 KiB.
 * What survived a phase stays to the end; each phase wants another size than the holes are of.
 *
 *   survivors THREADS    (survivors.h says what is printed) */
#include "survivors.h"

enum { PHASE_BYTES = 64 << 20, APART = 16 << 10 };

/* Live at the end: 64 MiB / 16 KiB blocks of each, 17 MiB together. */
static const size_t sizes[] = {16, 32, 64, 96, 128, 192, 256, 512, 1024, 2048};

/* In the order they were taken. */
static void free_list(Block* block) {
  while (block) {
    Block* next = block->next;
    free(block);
    block = next;
  }
}

static void phase(Holding* holding, size_t size, unsigned char stamp, unsigned among) {
  Block* doomed = NULL;
  Block** end = &doomed;
  size_t to_next = 0;
  for (size_t taken = 0; taken < (size_t)PHASE_BYTES / among; taken += size) {
    Block* block = take_block(size, stamp);
    if (to_next < size) {
      survive(holding, block);
      to_next += APART;
    } else {
      *end = block;
      end = &block->next;
    }
    to_next -= size;
  }
  *end = NULL;
  free_list(doomed);
}

static void leave(Holding* holding, unsigned number, unsigned among) {
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    phase(holding, sizes[i], (unsigned char)(1 + i + 16 * number), among);
}

int main(int argc, char** argv) { return watch_survivors(argc, argv, leave); }
