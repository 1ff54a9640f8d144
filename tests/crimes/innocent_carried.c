/* No misuse: what lay in a block before its owner got it is carried about and comes back to the same place later, when
 * another block is there. Of a free block it would say that it is free. */
#include "crime.h"

enum { SMALL = 16384, SMALLS = 256, LARGE = 65536, LARGES = 64, ROUNDS = 4 };

static void* smalls[SMALLS];
static uint64_t* larges[LARGES];
static uint64_t carried[LARGES];
static int returned;

static void take_and_free_smalls(void) {
  for (int at = 0; at < SMALLS; ++at) smalls[at] = malloc(SMALL);
  for (int at = 0; at < SMALLS; ++at) {
    for (int from = 0; from < LARGES; ++from) {
      if (smalls[at] != larges[from]) continue;
      ((uint64_t*)smalls[at])[1] = carried[from];
      ++returned;
    }
  }
  for (int at = 0; at < SMALLS; ++at) free(smalls[at]);
}

static void take_and_free_larges(void) {
  for (int at = 0; at < LARGES; ++at) larges[at] = malloc(LARGE);
  for (int at = 0; at < LARGES; ++at) carried[at] = larges[at][1];
  for (int at = 0; at < LARGES; ++at) free(larges[at]);
}

int main(void) {
  for (int round = 0; round < ROUNDS; ++round) {
    take_and_free_smalls();
    take_and_free_larges();
  }
  printf("%d came back\n", returned);
  return survived(smalls);
}
