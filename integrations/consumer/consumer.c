/* A program that uses an installed reheap from C.
 * Called with "serves" when malloc should be reheap's, with "beside" when it should not. */
#include <pthread.h>
#include <reheap/reheap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STRING(text) #text
#define VERSION_OF(major, minor, patch) STRING(major) "." STRING(minor) "." STRING(patch)

static int failures;

static void expect(bool truth, const char* what) {
  if (truth) return;
  fprintf(stderr, "consumer: not so: %s\n", what);
  failures++;
}

static void* in_another_thread(void* block) {
  rh_free(block);
  return rh_calloc(10, 100);
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  bool serves = strcmp(arguments[1], "serves") == 0;

  expect(strcmp(rh_version(), VERSION_OF(RH_VERSION_MAJOR, RH_VERSION_MINOR, RH_VERSION_PATCH)) == 0,
         "header and library have one version");

  char* block = rh_malloc(100);
  expect(block && rh_owns(block) && rh_usable_size(block) >= 100, "rh_malloc gives a block of its own");
  memset(block, 1, 100);

  pthread_t thread;
  void* zeros = NULL;
  expect(pthread_create(&thread, NULL, in_another_thread, block) == 0, "a thread starts");
  pthread_join(thread, &zeros);
  expect(zeros && memcmp(zeros, "\0\0\0\0", 4) == 0, "a block made by a thread outlives it");
  rh_free(zeros);

  /* libc's own call of malloc must find the same allocator as the program's. */
  char* copy = strdup("text");
  void* plain = malloc(1000);
  expect(rh_owns(copy) == serves, "libc's malloc is whose it should be");
  expect(rh_owns(plain) == serves, "the program's malloc is whose it should be");
  free(copy);
  free(plain);
  return failures != 0;
}
