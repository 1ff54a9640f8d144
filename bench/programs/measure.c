/* Runs one command and writes what it cost as one line of JSON.
 *
 * A process that is born by fork starts with its parent's resident memory as its peak, so a command
 * started by a large interpreter reports the interpreter. This launcher is static and small, starts
 * the command with posix_spawn, and reports its own peak, below which no figure can be trusted.
 *
 *   measure --out FILE [--env NAME=VALUE]... -- COMMAND ARGUMENTS...
 *
 * The environment given is seen by the command only. Exit status: 0 when the command was started and
 * waited for (its own status is in the JSON), 2 otherwise. */
#define _GNU_SOURCE
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

extern char** environ;

static int fail(const char* what, const char* detail) {
  fprintf(stderr, "measure: %s: %s\n", what, detail);
  return 2;
}

static long long now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static long long microseconds(struct timeval time) {
  return time.tv_sec * 1000000LL + time.tv_usec;
}

/* The floor of what a command's peak can show: a command starts with the peak of this address space.
 * (getrusage would not do: there this launcher shows the peak of whoever started it.) */
static long own_peak_kib(void) {
  char line[128];
  long peak = -1;
  FILE* status = fopen("/proc/self/status", "re");
  while (status && peak < 0 && fgets(line, sizeof line, status)) sscanf(line, "VmHWM: %ld", &peak);
  if (status) fclose(status);
  return peak;
}

static void write_json(FILE* out, long long wall_ns, int status, const struct rusage* used) {
  fprintf(out,
          "{\"wall_ns\":%lld,\"user_us\":%lld,\"system_us\":%lld,\"peak_kib\":%ld,"
          "\"minor_faults\":%ld,\"major_faults\":%ld,\"voluntary_switches\":%ld,"
          "\"involuntary_switches\":%ld,\"exit\":%d,\"signal\":%d,\"launcher_peak_kib\":%ld}\n",
          wall_ns, microseconds(used->ru_utime), microseconds(used->ru_stime), used->ru_maxrss,
          used->ru_minflt, used->ru_majflt, used->ru_nvcsw, used->ru_nivcsw,
          WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
          own_peak_kib());
}

/* The loader takes the last of two equal names and getenv the first, so no name may stand twice. */
static int is_replaced(const char* inherited, char** extra, int count) {
  size_t name = strcspn(inherited, "=") + 1;
  for (int i = 0; i < count; i++)
    if (strncmp(inherited, extra[i], name) == 0) return 1;
  return 0;
}

static char** environment_with(char** extra, int count) {
  int inherited = 0;
  while (environ[inherited]) inherited++;
  char** all = malloc((size_t)(inherited + count + 1) * sizeof *all);
  if (!all) return NULL;
  int total = 0;
  for (int i = 0; i < count; i++) all[total++] = extra[i];
  for (int i = 0; i < inherited; i++)
    if (!is_replaced(environ[i], extra, count)) all[total++] = environ[i];
  all[total] = NULL;
  return all;
}

static int run(char** command, char** environment, FILE* out) {
  long long start = now_ns();
  pid_t child;
  int error = posix_spawnp(&child, command[0], NULL, NULL, command, environment);
  if (error) return fail(command[0], strerror(error));
  int status;
  struct rusage used;
  while (wait4(child, &status, 0, &used) < 0)
    if (errno != EINTR) return fail("wait4", strerror(errno));
  write_json(out, now_ns() - start, status, &used);
  return fclose(out) == 0 ? 0 : fail("cannot write", strerror(errno));
}

int main(int argc, char** argv) {
  const char* path = NULL;
  char* extra[64];
  int extras = 0;
  int at = 1;
  for (; at + 1 < argc && strcmp(argv[at], "--") != 0; at += 2) {
    if (strcmp(argv[at], "--out") == 0)
      path = argv[at + 1];
    else if (strcmp(argv[at], "--env") == 0 && extras < 64 && strchr(argv[at + 1], '='))
      extra[extras++] = argv[at + 1];
    else
      return fail("not an option", argv[at]);
  }
  if (!path || at + 1 >= argc || strcmp(argv[at], "--") != 0)
    return fail("usage", "measure --out FILE [--env NAME=VALUE]... -- COMMAND ARGUMENTS...");
  FILE* out = fopen(path, "we");
  if (!out) return fail(path, strerror(errno));
  char** environment = environment_with(extra, extras);
  return environment ? run(argv + at + 1, environment, out) : fail("out of memory", path);
}
