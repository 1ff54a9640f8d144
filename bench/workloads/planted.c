/* Preloaded before an allocator, it plants a difference that is known beforehand (./dev bench controls). It defines
 * nothing of malloc's family. When the process ends:
 *
 *   -DWORK=N    it works until the process has taken N percent more CPU time than it had
 *   -DLEAK=N    it takes blocks and keeps them, until the peak of resident memory is N percent above what it was */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WHOLE = 100, BLOCK = 16 * 1024, LONGEST_STATUS = 4096 };

#ifdef WORK
static double cpu_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

__attribute__((destructor)) static void work(void) {
  double until = cpu_s() * (WHOLE + WORK) / WHOLE;
  while (cpu_s() < until) {}
}
#endif

#ifdef LEAK
/* Of this program alone: getrusage's has what ran in the process before it too. 0 when it cannot be told. */
static unsigned long peak_kib(void) {
  char status[LONGEST_STATUS];
  int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? -1 : read(file, status, sizeof status - 1);
  if (file >= 0) close(file);
  status[length < 0 ? 0 : length] = '\0';
  const char* line = strstr(status, "VmHWM:");
  return line ? strtoul(line + strlen("VmHWM:"), NULL, 10) : 0;
}

__attribute__((destructor)) static void leak(void) {
  unsigned long until = peak_kib() * (WHOLE + LEAK) / WHOLE;
  while (peak_kib() < until) {
    char* block = malloc(BLOCK);
    if (!block) abort();
    memset(block, 1, BLOCK);
  }
}
#endif
