/* Frees a large block that another thread has freed. */
#include "crime.h"

#include <pthread.h>

static void* free_it(void* block) {
  free(block);
  return NULL;
}

int main(void) {
  char* block = malloc(8 * MIB);
  pthread_t thread;
  pthread_create(&thread, NULL, free_it, block);
  pthread_join(thread, NULL);
  free(hidden(block));
  return survived(block);
}
