/* Two threads free the same small block, its owner first. */
#include <pthread.h>

#include "small.h"

static void* free_again(void* unused) {
  for (int at = 100; at < 1000; ++at) free(hidden(blocks[at]));
  return unused;
}

int main(void) {
  pthread_t thread;
  take_blocks();
  free(blocks[500]);
  pthread_create(&thread, NULL, free_again, NULL);
  pthread_join(thread, NULL);
  return survived_reuse();
}
