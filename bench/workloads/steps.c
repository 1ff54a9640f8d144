/* Counts the instructions of a command by single-stepping it: slow, and works for programs that will not
 * run under valgrind. Counts the first thread only.
 *
 *   steps COUNT_FILE COMMAND ARGUMENTS...
 *
 * Exits as the command did (128 + its signal if it died of one), or with 2 if it could not run. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static int fail(const char* what) {
  fprintf(stderr, "steps: %s: %s\n", what, strerror(errno));
  return 2;
}

/* The signal to hand on: a trap is ours, all else is the command's own. */
static int signal_of(int status) {
  int signal = WSTOPSIG(status);
  return signal == SIGTRAP ? 0 : signal;
}

static long count_steps(pid_t child, int* status) {
  long steps = 0;
  while (waitpid(child, status, 0) == child && WIFSTOPPED(*status)) {
    steps++;
    if (ptrace(PTRACE_SINGLESTEP, child, NULL, signal_of(*status)) < 0) return -1;
  }
  return steps;
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: steps COUNT_FILE COMMAND ARGUMENTS...\n");
    return 2;
  }
  pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    execvp(argv[2], argv + 2);
    _exit(fail(argv[2]));
  }
  int status = 0;
  long steps = child > 0 ? count_steps(child, &status) : -1;
  if (steps < 0) return fail("ptrace");
  FILE* out = fopen(argv[1], "we");
  if (!out || fprintf(out, "%ld\n", steps) < 0 || fclose(out) != 0) return fail(argv[1]);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
