/* A small program without privileges locks all of its memory: the limit, 8 MiB by default, counts reserved address
 * space as
   well. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

int main(void) {
  struct rlimit limit;
  void* block = malloc(100000);
  if (!block || getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return 1;
  if (limit.rlim_max < 8 << 20) {
    puts("the limit is too low to be met");
    return 0;
  }
  limit.rlim_cur = 8 << 20;
  if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0) return 2;
  if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) return 3;
  if (mlockall(MCL_CURRENT) != 0) {
    perror("mlockall");
    return 4;
  }
  free(block);
  return malloc(100000) ? 0 : 5;
}
