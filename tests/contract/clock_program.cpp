// A program with its own clock_gettime, which allocates, as in libraries that change the time.
#include <malloc.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace {
int asked = 0;
}

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  ++asked;
  free(malloc(100000));
  free(malloc(3000000));
  return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
}

int main() {
  alarm(20);  // ends it if it hangs
  void* kept[100];
  for (int round = 0; round < 200; ++round) {
    for (void*& block : kept) block = malloc(50000);
    for (void* block : kept) free(block);
    malloc_trim(0);
  }
  timespec time{};
  if (clock_gettime(CLOCK_MONOTONIC, &time) != 0 || asked == 0) {
    std::puts("the program's own clock is not asked by itself");
    return 1;
  }
  return 0;
}
