/* Another thread frees a small block twice. */
#include <pthread.h>

#include "small.h"

static void* free_twice(void* unused) {
  for (int at = 100; at < 600; ++at) free(blocks[at]);
  free(hidden(blocks[590]));
  for (int at = 600; at < 1000; ++at) free(blocks[at]);
  return unused;
}

int main(void) {
  pthread_t thread;
  take_blocks();
  pthread_create(&thread, NULL, free_twice, NULL);
  pthread_join(thread, NULL);
  return survived_reuse();
}
