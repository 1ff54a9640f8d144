/* Preloaded before an allocator: tells which file serves each function of the heap in this very process.
 *
 * Appends lines "PID<tab>TIME<tab>FUNCTION<tab>PATH" to the file in REHEAP_WITNESS when a process starts, by one write,
 * so that lines of several processes do not mix. TIME is CLOCK_MONOTONIC's, in ns: it tells which of the programs that
 * the process has been is meant. It allocates nothing. */
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "witness/symbols.h"

static const char* const kFunctions[] = {"malloc", "free", "calloc", "realloc"};

/* The first object that defines it, in the loader's order. Its address would not do: a program linked to fixed
 * addresses that takes the address of malloc holds a jump to it, and the loader gives that to everybody. */
static const char* definer_of(const char* function) {
  for (struct link_map* object = _r_debug.r_map; object; object = object->l_next)
    if (object_defines(object, function)) return object->l_name;
  return NULL;
}

/* The program itself has no name in the loader's list. */
static const char* full_path(const char* path, char* room, size_t size) {
  if (path[0]) return path;
  ssize_t length = readlink("/proc/self/exe", room, size - 1);
  if (length <= 0) return path;
  room[length] = 0;
  return room;
}

static const char* server_of(const char* function, char* room, size_t size) {
  const char* path = definer_of(function);
  return path ? full_path(path, room, size) : NULL;
}

static size_t add_line(char* text, size_t used, size_t size, long long time, const char* function) {
  char room[PATH_MAX];
  const char* path = server_of(function, room, sizeof room);
  if (!path) return used;
  int length = snprintf(text + used, size - used, "%d\t%lld\t%s\t%s\n", (int)getpid(), time, function, path);
  return length > 0 && (size_t)length < size - used ? used + (size_t)length : used;
}

static long long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void testify(const char* out) {
  char text[4 * (PATH_MAX + 32)];
  size_t used = 0;
  long long time = now_ns();
  for (size_t i = 0; i < sizeof kFunctions / sizeof *kFunctions; i++)
    used = add_line(text, used, sizeof text, time, kFunctions[i]);
  int file = open(out, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return;
  ssize_t written = write(file, text, used);
  (void)written; /* who reads it finds the lines missing */
  close(file);
}

__attribute__((constructor)) static void begin(void) {
  const char* out = secure_getenv("REHEAP_WITNESS");
  if (out) testify(out);
}
