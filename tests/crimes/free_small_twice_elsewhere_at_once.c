/* Another thread frees a small block twice, with nothing between. */
#include <pthread.h>

#include "small.h"

static void* free_twice(void* block) {
  free(block);
  free(hidden(block));
  return NULL;
}

int main(void) {
  pthread_t thread;
  take_blocks();
  pthread_create(&thread, NULL, free_twice, blocks[500]);
  pthread_join(thread, NULL);
  return survived(blocks[500]);
}
