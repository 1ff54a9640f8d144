/* A program that has its own pthread_mutex_trylock, which allocates, as programs do that look at their locks. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int g_locked;

int pthread_mutex_trylock(pthread_mutex_t* mutex) {
  free(malloc(10));
  ++g_locked;
  int (*next)(pthread_mutex_t*) = (int (*)(pthread_mutex_t*))dlsym(RTLD_NEXT, "pthread_mutex_trylock");
  return next(mutex);
}

static void* allocate(void* unused) {
  (void)unused;
  return malloc(100);
}

int main(void) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  for (int i = 0; i < 100; ++i) {
    pthread_t thread;
    void* block;
    if (pthread_create(&thread, NULL, allocate, NULL) != 0 || pthread_join(thread, &block) != 0) return 1;
    free(block);
  }
  if (g_locked != 0) {
    fprintf(stderr, "locked %d times from outside\n", g_locked);
    return 1;
  }
  return pthread_mutex_trylock(&mutex) != 0 || g_locked != 1;
}
