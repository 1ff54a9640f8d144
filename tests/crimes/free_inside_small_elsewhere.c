/* Another thread frees a pointer into a small block. */
#include <pthread.h>

#include "small.h"

static void* free_inside(void* unused) {
  free(hidden(blocks[500] + 16));
  return unused;
}

int main(void) {
  pthread_t thread;
  take_blocks();
  pthread_create(&thread, NULL, free_inside, NULL);
  pthread_join(thread, NULL);
  return survived_reuse();
}
