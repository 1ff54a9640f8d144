/* Two threads free the same small block, its owner first, and take up what they freed before they hear of each other.
 * */
#include <pthread.h>

#include "small.h"

static void* free_it(void* block) {
  free(block);
  return NULL;
}

int main(void) {
  pthread_t thread;
  take_blocks();
  free_some();
  pthread_create(&thread, NULL, free_it, hidden(blocks[520]));
  pthread_join(thread, NULL);
  return survived_reuse();
}
