/* A program of musl's: threads that come and go, forks in the middle of them, locks that die with their thread, and
 * waits. On reheap (the argument says so) it also looks how many heaps so many threads took: each new one is to take
 * over that of one that has ended. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <reheap/reheap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what) ((what) ? (void)0 : fail(#what, __LINE__))

enum { kThreads = 4, kRounds = 60, kBlocks = 500, kHeapsAtMost = 3 * kThreads };

static pthread_mutex_t g_again, g_robust;
static int g_has_robust; /* not under QEMU */

static void fail(const char* what, int line) {
  dprintf(2, "line %d: %s does not hold (errno: %s)\n", line, what, strerror(errno));
  _exit(1);
}

static size_t size_of(int block) { return (size_t)(block * 37 % 3000) + 1; }

static void* allocate(void* dies_with_lock) {
  unsigned char* blocks[kBlocks];
  for (int i = 0; i < kBlocks; ++i) {
    CHECK((blocks[i] = malloc(size_of(i))) != NULL);
    memset(blocks[i], i, size_of(i));
  }
  for (int i = 0; i < kBlocks; ++i) {
    CHECK(blocks[i][size_of(i) - 1] == (unsigned char)i);
    free(blocks[i]);
  }
  if (dies_with_lock != NULL) CHECK(pthread_mutex_lock(&g_robust) == 0);
  return malloc(100);
}

static void come_and_go(void) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) CHECK(pthread_create(&threads[i], NULL, allocate, NULL) == 0);
  for (int i = 0; i < kThreads; ++i) {
    void* block;
    CHECK(pthread_join(threads[i], &block) == 0);
    free(block);
  }
}

/* With a lock held that is in the thread's list, as what the thread owns is. */
static void fork_once(void) {
  CHECK(pthread_mutex_lock(&g_again) == 0);
  void* block = malloc(50);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    free(block); /* the lock stays held: to musl it is the parent's */
    come_and_go();
    pid_t grandchild = fork();
    if (grandchild == 0) {
      free(malloc(9));
      pthread_exit(NULL);
    }
    int status;
    CHECK(waitpid(grandchild, &status, 0) == grandchild && status == 0);
    exit(7);
  }
  CHECK(pthread_mutex_unlock(&g_again) == 0);
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
  free(block);
}

static void die_with_lock(void) {
  pthread_t thread;
  void* block;
  CHECK(pthread_create(&thread, NULL, allocate, &block) == 0 && pthread_join(thread, &block) == 0);
  free(block);
  CHECK(pthread_mutex_lock(&g_robust) == EOWNERDEAD);
  CHECK(pthread_mutex_consistent(&g_robust) == 0 && pthread_mutex_unlock(&g_robust) == 0);
}

static void use_the_rest(void) {
  void* block = NULL;
  CHECK(posix_memalign(&block, 4096, 10000) == 0 && ((size_t)block & 4095) == 0);
  CHECK(mprotect(block, 4096, PROT_READ) == 0 && mprotect(block, 4096, PROT_READ | PROT_WRITE) == 0);
  free(block);
  CHECK((block = aligned_alloc(256, 512)) != NULL && ((size_t)block & 255) == 0);
  CHECK((block = realloc(block, 100000)) != NULL);
  free(block);
  char* line = NULL;
  CHECK(asprintf(&line, "%d", 17) == 2 && strcmp(line, "17") == 0);
  free(line);
  free(strdup("what the C library allocates"));
  CHECK(poll(NULL, 0, 1) == 0 && usleep(1) == 0);
  errno = 0;
  CHECK(malloc((size_t)1 << 62) == NULL && errno == ENOMEM);
}

/* With the least stack that a thread of musl's may have. */
static void* allocate_little(void* unused) {
  for (size_t size = 1; size < 100000; size += size / 64 + 1) {
    free(malloc(size));
    free(malloc(size / 7));
  }
  return unused;
}

static void use_small_stacks(void) {
  pthread_attr_t small;
  CHECK(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN) == 0);
  for (int i = 0; i < 8; ++i) {
    pthread_t thread;
    CHECK(pthread_create(&thread, &small, allocate_little, NULL) == 0 && pthread_join(thread, NULL) == 0);
  }
  CHECK(pthread_attr_destroy(&small) == 0);
}

static void make_locks(void) {
  pthread_mutexattr_t kind;
  CHECK(pthread_mutexattr_init(&kind) == 0 && pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE) == 0);
  CHECK(pthread_mutex_init(&g_again, &kind) == 0);
  CHECK(pthread_mutexattr_init(&kind) == 0);
  g_has_robust = pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST) == 0;
  CHECK(pthread_mutex_init(&g_robust, &kind) == 0);
}

#pragma weak rh_stats_get

static void look_at_heaps(void) {
  CHECK(rh_stats_get != NULL);
  rh_stats stats = {.struct_size = sizeof(stats)};
  CHECK(rh_stats_get(&stats) && stats.heaps > 1 && stats.heaps <= kHeapsAtMost);
}

int main(int count, char** words) {
  make_locks();
  for (int round = 0; round < kRounds; ++round) {
    come_and_go();
    if (round % 20 == 0 && getenv("MUSL_NO_FORKS") == NULL) fork_once();
    if (round % 20 == 1 && g_has_robust) die_with_lock();
  }
  use_small_stacks();
  use_the_rest();
  if (count == 2 && strcmp(words[1], "reheap") == 0) look_at_heaps();
  puts("ok");
  return 0;
}
