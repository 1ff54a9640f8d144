/* Runs one command and writes, as one line of JSON, what one process among those it starts cost: the first that has the
 * name given. For programs under Wine, which counts neither time nor memory of another process.
 *
 *   watch --out FILE --name PROGRAM.EXE -- COMMAND ARGUMENTS...
 *
 * A figure that could not be had is left out. commit_kib is the most private writable memory the process had mapped:
 * under Wine that is what it had committed, and its threads' stacks. Linux keeps no peak of it, so it is looked at every
 * few milliseconds: what rose and fell between two looks is missed.
 *
 * Exit status: that of the command; 2 when it could not be started. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 4, LATE_TICKS = 500, COMM = 15, PAGE_KIB = 4 };

extern char** environ;

typedef struct {
  char name[COMM + 1];
  pid_t process; /* 0 until it is found */
  int statm;
  long commit_kib;
  int ended;
  struct rusage used;
} Watched;

static int fail(const char* what, const char* detail) {
  fprintf(stderr, "watch: %s: %s\n", what, detail);
  return 2;
}

/* The beginning of a small file of /proc, as text. */
static int read_text(const char* path, char* text, size_t size) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? -1 : read(file, text, size - 1);
  if (file >= 0) close(file);
  text[length < 0 ? 0 : length] = 0;
  return length >= 0;
}

static int has_name(pid_t process, const char* name) {
  char path[64], text[64];
  snprintf(path, sizeof path, "/proc/%d/comm", (int)process);
  if (!read_text(path, text, sizeof text)) return 0;
  text[strcspn(text, "\n")] = 0;
  return strcasecmp(text, name) == 0;
}

/* Wine's processes leave their parent at once, and so become children of this one. */
static void find(Watched* watched) {
  char path[64], text[4096], *rest = text;
  snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
  if (!read_text(path, text, sizeof text)) return;
  for (char* word; (word = strtok_r(rest, " ", &rest));) {
    pid_t process = 0;
    if (sscanf(word, "%d", &process) != 1 || !has_name(process, watched->name)) continue;
    watched->process = process;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)process);
    watched->statm = open(path, O_RDONLY | O_CLOEXEC);
    return;
  }
}

static void look(Watched* watched) {
  if (watched->process == 0) find(watched);
  if (watched->process == 0 || watched->ended) return;
  char text[256];
  ssize_t length = pread(watched->statm, text, sizeof text - 1, 0);
  if (length <= 0) return;
  text[length] = 0;
  long pages = 0;
  if (sscanf(text, "%*d %*d %*d %*d %*d %ld", &pages) == 1 &&
      pages * PAGE_KIB > watched->commit_kib)
    watched->commit_kib = pages * PAGE_KIB;
}

/* Sees off whatever ended; whether `command` was among it. */
static int reap(Watched* watched, pid_t command, int* status) {
  int done = 0, ended_with;
  struct rusage used;
  for (pid_t ended; (ended = wait4(-1, &ended_with, WNOHANG, &used)) > 0;) {
    if (ended == watched->process) {
      watched->ended = 1;
      watched->used = used;
    }
    if (ended == command) {
      *status = ended_with;
      done = 1;
    }
  }
  return done;
}

static void wait_a_tick(void) {
  struct timespec tick = {0, TICK_MS * 1000000L};
  nanosleep(&tick, NULL);
}

static long long microseconds(struct timeval time) {
  return time.tv_sec * 1000000LL + time.tv_usec;
}

static void write_json(FILE* out, const Watched* watched) {
  fprintf(out, "{\"found\":%s", watched->process ? "true" : "false");
  if (watched->commit_kib > 0) fprintf(out, ",\"commit_kib\":%ld", watched->commit_kib);
  if (watched->ended)
    fprintf(out, ",\"user_us\":%lld,\"system_us\":%lld,\"peak_kib\":%ld,\"minor_faults\":%ld",
            microseconds(watched->used.ru_utime), microseconds(watched->used.ru_stime),
            watched->used.ru_maxrss, watched->used.ru_minflt);
  fprintf(out, "}\n");
}

static int run(char** words, Watched* watched, FILE* out) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  pid_t command;
  int error = posix_spawnp(&command, words[0], NULL, NULL, words, environ);
  if (error) return fail(words[0], strerror(error));
  int status = 0;
  while (!reap(watched, command, &status)) {
    look(watched);
    wait_a_tick();
  }
  /* For Windows a process has ended a moment before it has for Linux. */
  for (int i = 0; i < LATE_TICKS && watched->process && !watched->ended; i++) {
    wait_a_tick();
    reap(watched, command, &status);
  }
  write_json(out, watched);
  if (fclose(out) != 0) return fail("cannot write", strerror(errno));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char** argv) {
  Watched watched = {.statm = -1};
  if (argc < 7 || strcmp(argv[1], "--out") != 0 || strcmp(argv[3], "--name") != 0 ||
      strcmp(argv[5], "--") != 0)
    return fail("usage", "watch --out FILE --name PROGRAM.EXE -- COMMAND ARGUMENTS...");
  snprintf(watched.name, sizeof watched.name, "%s", argv[4]);
  FILE* out = fopen(argv[2], "we");
  return out ? run(argv + 6, &watched, out) : fail(argv[2], strerror(errno));
}
