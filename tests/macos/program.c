/* What is to be tried first on a Mac: whether malloc is served by whom the argument says (`reheap` or `system`), and
 * whether what depends on Darwin does as it should. tools/on_macos.sh runs it; elsewhere it is compiled alone. */
#include <errno.h>
#include <mach/mach.h>
#include <malloc/malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what) ((what) ? (void)0 : fail(#what, __LINE__))

enum { kThreads = 4, kRounds = 30, kBlocks = 500, kMebibyte = 1 << 20 };

static void fail(const char* what, int line) {
  dprintf(2, "line %d: %s does not hold (errno: %s)\n", line, what, strerror(errno));
  _exit(1);
}

static size_t size_of(int block) { return (size_t)(block * 37 % 3000) + 1; }

static void* allocate(void* unused) {
  unsigned char* blocks[kBlocks];
  for (int i = 0; i < kBlocks; ++i) {
    CHECK((blocks[i] = malloc(size_of(i))) != NULL);
    CHECK(malloc_size(blocks[i]) >= size_of(i));
    memset(blocks[i], i, size_of(i));
  }
  for (int i = 0; i < kBlocks; ++i) {
    CHECK(blocks[i][size_of(i) - 1] == (unsigned char)i);
    free(blocks[i]);
  }
  return unused;
}

static void threads_come_and_go(void) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) CHECK(pthread_create(&threads[i], NULL, allocate, NULL) == 0);
  for (int i = 0; i < kThreads; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
}

static void fork_once(void) {
  void* block = malloc(50);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    free(block);
    threads_come_and_go();
    exit(7);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
  free(block);
}

static void* fork_beside_others(void* unused) {
  for (int i = 0; i < 10; ++i) fork_once();
  return unused;
}

static void fork_while_threads_allocate(void) {
  pthread_t forks, other;
  CHECK(pthread_create(&forks, NULL, fork_beside_others, NULL) == 0);
  for (int i = 0; i < 40; ++i) {
    CHECK(pthread_create(&other, NULL, allocate, NULL) == 0);
    CHECK(pthread_join(other, NULL) == 0);
  }
  CHECK(pthread_join(forks, NULL) == 0);
}

/* Whoever made a block gets it back. */
static void zones_keep_their_blocks(void) {
  malloc_zone_t* zone = malloc_create_zone(0, 0);
  void* block = malloc_zone_malloc(zone, 100);
  CHECK(malloc_zone_from_ptr(block) == zone);
  free(block);
  block = malloc_zone_malloc(zone, 100);
  CHECK((block = realloc(block, 5000)) != NULL);
  free(block);
  malloc_destroy_zone(zone);
  block = malloc_zone_malloc(malloc_default_zone(), 30);
  free(block);
  malloc_zone_free(malloc_default_zone(), malloc(30));
  CHECK(malloc_default_purgeable_zone() != NULL);
}

static void the_rest_works(void) {
  void* block = NULL;
  CHECK(posix_memalign(&block, 4096, 10000) == 0 && ((size_t)block & 4095) == 0);
  free(block);
  CHECK((block = valloc(1)) != NULL && (size_t)block % (size_t)getpagesize() == 0);
  CHECK((block = realloc(block, 0)) != NULL);
  CHECK((block = reallocf(block, 100000)) != NULL);
  CHECK(reallocf(block, (size_t)1 << 62) == NULL);
  char* line = NULL;
  CHECK(asprintf(&line, "%d", 17) == 2 && strcmp(line, "17") == 0);
  free(line);
  free(strdup("what the C library allocates"));
  free(NULL);
  errno = 0;
  CHECK(malloc((size_t)1 << 62) == NULL && errno == ENOMEM);
}

static size_t footprint(void) {
  task_vm_info_data_t info;
  mach_msg_type_number_t count = TASK_VM_INFO_COUNT;
  CHECK(task_info(mach_task_self(), TASK_VM_INFO, (task_info_t)&info, &count) == KERN_SUCCESS);
  return (size_t)info.phys_footprint;
}

/* What was freed is to be gone when memory is asked back, and zero where it is used again. */
static void memory_goes_back(void) {
  enum { kSize = 200 * kMebibyte };
  char* block = malloc(kSize);
  memset(block, 1, kSize);
  size_t full = footprint();
  free(block);
  malloc_zone_pressure_relief(NULL, 0);
  size_t after = footprint();
  printf("footprint: %zu MiB with the block, %zu MiB without\n", full / kMebibyte, after / kMebibyte);
  CHECK(after + kSize / 2 < full);
  block = calloc(1, kSize);
  for (size_t at = 0; at < kSize; at += 4096) CHECK(block[at] == 0);
  free(block);
}

int main(int count, char** words) {
  const char* wanted = count == 2 ? words[1] : "reheap";
  void* block = malloc(10);
  malloc_zone_t* zone = malloc_zone_from_ptr(block);
  CHECK(zone != NULL);
  const char* name = malloc_get_zone_name(zone);
  printf("malloc is served by the zone %s\n", name != NULL ? name : "without a name");
  CHECK((name != NULL && strcmp(name, "reheap") == 0) == (strcmp(wanted, "reheap") == 0));
  free(block);
  for (int round = 0; round < kRounds; ++round) threads_come_and_go();
  fork_once();
  fork_while_threads_allocate();
  zones_keep_their_blocks();
  the_rest_works();
  if (strcmp(wanted, "reheap") == 0) memory_goes_back();
  puts("ok");
  return 0;
}
