/* A few blocks keep many pages: 280 MB of blocks of random sizes, small ones most often, are taken, and all but one
 * in twenty are freed in random order.
 *
 *   churn_survivors THREADS    (survivors.h says what is printed) */
#include <sys/mman.h>

#include "survivors.h"

enum { MOST_BYTES = 280000000, ONE_IN = 20, LEAST_BITS = 5, MOST_BITS = 10, LEAST_SIZE = 16 };

/* The table of all blocks is the kernel's own and is gone before memory is read. */
static Block** map_table(size_t bytes) {
  void* table = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return (Block**)must(table == MAP_FAILED ? NULL : table);
}

static size_t fill(Block** table, size_t bytes, Random* random, unsigned char stamp) {
  size_t count = 0;
  for (size_t taken = 0; taken < bytes; count++) {
    size_t size = skewed_size(random, LEAST_BITS, MOST_BITS);
    table[count] = take_block(size, stamp);
    taken += size;
  }
  return count;
}

static void shuffle(Block** table, size_t count, Random* random) {
  for (size_t i = count; i > 1; i--) {
    size_t other = below(random, i);
    Block* block = table[other];
    table[other] = table[i - 1];
    table[i - 1] = block;
  }
}

static void leave(Holding* holding, unsigned number, unsigned among) {
  Random random = random_for(number);
  size_t bytes = MOST_BYTES / among, table_bytes = (bytes / LEAST_SIZE + 1) * sizeof(Block*);
  Block** table = map_table(table_bytes);
  size_t count = fill(table, bytes, &random, (unsigned char)(1 + number));
  shuffle(table, count, &random);
  for (size_t i = 0; i < count / ONE_IN; i++) survive(holding, table[i]);
  for (size_t i = count / ONE_IN; i < count; i++) free(table[i]);
  munmap(table, table_bytes);
}

int main(int argc, char** argv) { return watch_survivors(argc, argv, leave); }
