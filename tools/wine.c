// Runs a Windows program under Wine: tools/wine [--timeout SECONDS | --become] PROGRAM [ARGUMENTS]
//
// What the test builds for Windows use as their emulator, made to be used by many at once and by nobody's hand:
//   - the prefix (Wine's C: drive and registry) is its own, made once, Windows 10, and asks nothing (wine_prefix.py);
//   - the server outlives the program, so that only the first one pays for a cold start, and leaves after some idle
//     minutes;
//   - the program's streams are ours and its exit status is handed on (Unix keeps its low eight bits);
//   - whatever the program started is ended with it, after a timeout too (status 124).
//
// With --become it turns into Wine's loader instead: who started it then sees Wine's processes itself, and has to end
// them. A program of this system is run as it is: CMake puts its emulator before Python too.
//
// A 32-bit program finds a prefix of its own and the 32-bit half of Wine, which tools/fetch_windows.py brings.
//
// Environment: WINEDLLOVERRIDES and WINEDEBUG reach Wine as they are; REHEAP_WINE_TIMEOUT is --timeout's default;
// REHEAP_CACHE is where the prefixes lie, else ~/.cache/reheap.
//
// In C because the tests start it well over a thousand times, mostly for programs that end at once: a script takes
// longer than they do.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TIMED_OUT = 124, CANNOT_RUN = 125 };
enum { X86 = 0x14C, X86_64 = 0x8664 };
enum { PATH_SIZE = 4096, STAMP_SIZE = 64 };

// Where servers have their folders: as TMPDIR says, so that it has to say the same each time.
#define SOCKETS "/tmp"

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char* form, ...) {
  va_list words;
  va_start(words, form);
  fputs("wine: ", stderr);
  vfprintf(stderr, form, words);
  fputc('\n', stderr);
  exit(CANNOT_RUN);
}

static const char* g_tools;  // the folder of this file, our first word

// ---- the prefix -----------------------------------------------------------------------------------------------------

// Wine's world for one processor.
struct prefix {
  char folder[PATH_SIZE];
  char half[PATH_SIZE];  // Wine's for 32-bit programs; else empty
  char loader[PATH_SIZE];
  char server[PATH_SIZE];
};

__attribute__((format(printf, 2, 3))) static void write_path(char* path, const char* form, ...) {
  va_list words;
  va_start(words, form);
  int length = vsnprintf(path, PATH_SIZE, form, words);
  va_end(words);
  if (length < 0 || length >= PATH_SIZE) fail("a path is longer than %d bytes", PATH_SIZE);
}

// The first of the names that is a program in PATH or, with its own folder, anywhere.
static void find_first(char* found, const char* const* names) {
  const char* search = getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin";
  for (; *names; names++)
    for (const char* folder = strchr(*names, '/') ? "" : search; folder; folder = strchr(folder, ':')) {
      folder += *folder == ':';
      int length = (int)strcspn(folder, ":");
      write_path(found, "%.*s%s%s", length, folder, length ? "/" : "", *names);
      if (access(found, X_OK) == 0) return;
    }
  fail("no wine is installed (Debian package wine64)");
}

static void find_prefix(struct prefix* prefix, int machine) {
  char cache[PATH_SIZE];
  const char* chosen = getenv("REHEAP_CACHE");
  if (chosen && *chosen)
    write_path(cache, "%s", chosen);
  else if (getenv("HOME"))
    write_path(cache, "%s/.cache/reheap", getenv("HOME"));
  else
    fail("neither REHEAP_CACHE nor HOME says where the prefixes lie");
  write_path(prefix->folder, "%s/prefixes/%s", cache, machine == X86 ? "i686" : "x86_64");
  write_path(prefix->half, machine == X86 ? "%s/wine-i386" : "", cache);
  find_first(prefix->loader, (const char*[]){"/usr/lib/wine/wine64", "wine64", "wine", NULL});
  find_first(prefix->server, (const char*[]){"/usr/lib/wine/wineserver64", "wineserver64", "wineserver", NULL});
}

// The environment of every program in it, which becomes ours. Without a desktop: the first window of a program would
// start one, which was seen to take ten seconds each time. Without random addresses: 64-bit Wine's loader has a place
// of its own, its heap begins anywhere in the gibibyte behind, and in one of 8,000 starts lay where Windows shows every
// process the time; such a process ends with status 1 and no word. Where that is not allowed it is as it was.
static void enter(const struct prefix* prefix) {
  char text[PATH_SIZE];
  personality(ADDR_NO_RANDOMIZE);
  const char* overrides = getenv("WINEDLLOVERRIDES");
  write_path(text, "explorer.exe=%s%s", overrides && *overrides ? ";" : "", overrides ? overrides : "");
  setenv("WINEDLLOVERRIDES", text, 1);
  setenv("WINEDEBUG", "-all", 0);
  write_path(text, "%.*s", (int)(strrchr(prefix->folder, '/') - prefix->folder), prefix->folder);
  setenv("HOME", text, 0);
  setenv("WINEPREFIX", prefix->folder, 1);
  setenv("WINELOADER", prefix->loader, 1);
  setenv("WINESERVER", prefix->server, 1);
  setenv("TMPDIR", SOCKETS, 1);
  if (prefix->half[0]) setenv("WINEDLLPATH", prefix->half, 1);
}

static size_t read_file(const char* path, char* into, size_t size) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t length = read(file, into, size);
  close(file);
  return length > 0 ? (size_t)length : 0;
}

// Changes when a prefix would be made in another way. The sum is FNV-1a.
static void describe_making(const struct prefix* prefix, char stamp[STAMP_SIZE]) {
  static const char* const makers[] = {"wine_prefix.py", "bcryptprimitives.c"};
  uint64_t sum = 0xCBF29CE484222325u;
  for (int i = 0; i < 2; i++) {
    char path[PATH_SIZE], content[1 << 16];
    write_path(path, "%s/%s", g_tools, makers[i]);
    size_t length = read_file(path, content, sizeof content);
    for (size_t at = 0; at < length; at++) sum = (sum ^ (unsigned char)content[at]) * 0x100000001B3u;
  }
  struct stat loader;
  if (stat(prefix->loader, &loader) != 0) fail("%s: %s", prefix->loader, strerror(errno));
  snprintf(stamp, STAMP_SIZE, "%016llx %lld %lld", (unsigned long long)sum, (long long)loader.st_size,
           (long long)loader.st_mtime);
}

static bool is_made(const struct prefix* prefix, const char* stamp) {
  char path[PATH_SIZE], found[STAMP_SIZE] = "";
  write_path(path, "%s/reheap.stamp", prefix->folder);
  read_file(path, found, sizeof found - 1);
  return strcmp(found, stamp) == 0 && (!prefix->half[0] || access(prefix->half, F_OK) == 0);
}

// A server holds a lock on a file of its own folder. Debian's notes that folder's name in the prefix.
static bool is_served(const struct prefix* prefix) {
  struct stat there;
  if (stat(prefix->folder, &there) != 0) return false;
  char path[PATH_SIZE], parent[256] = "";
  write_path(path, "%s/wineserver", prefix->folder);
  read_file(path, parent, sizeof parent - 1);
  parent[strcspn(parent, "\r\n")] = 0;
  if (!parent[0]) snprintf(parent, sizeof parent, ".wine-%u", getuid());
  write_path(path, "%s/%s/server-%llx-%llx/lock", SOCKETS, parent, (unsigned long long)there.st_dev,
             (unsigned long long)there.st_ino);
  int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return false;
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  bool held = fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  close(file);
  return held;
}

static void run_prefix_script(const struct prefix* prefix, const char* stamp) {
  char script[PATH_SIZE];
  write_path(script, "%s/wine_prefix.py", g_tools);
  pid_t maker = fork();
  if (maker < 0) fail("fork: %s", strerror(errno));
  if (maker == 0) {
    execlp("python3", "python3", "-B", script, prefix->folder, prefix->half, prefix->loader, prefix->server, stamp,
           (char*)NULL);
    fail("python3: %s", strerror(errno));
  }
  int status = -1;
  while (waitpid(maker, &status, 0) < 0 && errno == EINTR) {}
  if (status != 0) exit(CANNOT_RUN);  // it has said why
}

// There is a prefix, and a server runs in it.
static void make_ready(const struct prefix* prefix) {
  char path[PATH_SIZE], stamp[STAMP_SIZE];
  for (const char* end = prefix->folder; end; end = strchr(end + 1, '/')) {
    write_path(path, "%.*s", (int)(end - prefix->folder), prefix->folder);
    mkdir(path, 0777);
  }
  write_path(path, "%s.lock", prefix->folder);
  int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock < 0) fail("%s: %s", path, strerror(errno));
  while (flock(lock, LOCK_EX) != 0 && errno == EINTR) {}
  describe_making(prefix, stamp);
  if (!is_made(prefix, stamp))
    run_prefix_script(prefix, stamp);
  else if (!is_served(prefix))
    run_prefix_script(prefix, "");
  close(lock);
}

// ---- the program ----------------------------------------------------------------------------------------------------

// The processor that a PE file is for; 0 for a program of this system. What is no file is for Wine to look up.
static int machine_of(const char* program) {
  unsigned char head[4096] = {0};
  int file = open(program, O_RDONLY | O_CLOEXEC);
  if (file < 0) return X86_64;
  ssize_t length = read(file, head, sizeof head);
  close(file);
  if (length < 64 || head[0] != 'M' || head[1] != 'Z') return 0;
  uint32_t start;
  memcpy(&start, head + 0x3C, sizeof start);
  return start <= sizeof head - 6 ? head[start + 4] | head[start + 5] << 8 : X86_64;
}

static int list_children(pid_t* children, int room) {
  char path[64], text[1 << 14];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
  text[read_file(path, text, sizeof text - 1)] = 0;
  int count = 0;
  for (char *word = text, *end; count < room && (children[count] = (pid_t)strtol(word, &end, 10)) > 0; word = end)
    count++;
  return count;
}

// Until there are none: those of an ended process become ours.
static void end_descendants(void) {
  pid_t children[1024];
  for (int turn = 0; turn < 200; turn++) {
    int count = list_children(children, 1024);
    if (count == 0) return;
    for (int i = 0; i < count; i++) kill(children[i], SIGKILL);
    while (waitpid(-1, NULL, WNOHANG) > 0) {}
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  }
}

static const char* g_program;
static const char* g_timeout;

// Nothing of the C library's that a signal may not interrupt: main only waits.
static void on_signal(int number) {
  if (number == SIGALRM) {
    dprintf(STDERR_FILENO, "wine: %s did not end within %s s\n", g_program, g_timeout);
    end_descendants();
    _exit(TIMED_OUT);
  }
  end_descendants();
  _exit(128 + number);
}

// In the child: the program, which ends with its parent, and has no file of its parent's but the streams.
__attribute__((noreturn)) static void become(char** command) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (close_range(3, ~0u, 0) != 0)
    for (int file = 3; file < 1024; file++) close(file);
  execv(command[0], command);
  fail("%s: %s", command[0], strerror(errno));
}

static int run(char** command, double seconds) {
  // Wine's children leave their parent at once; so they come to us, and can be found and ended.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t none, ours;
  sigemptyset(&ours);
  const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGALRM};
  for (int i = 0; i < 4; i++) sigaddset(&ours, numbers[i]);
  sigprocmask(SIG_BLOCK, &ours, &none);  // until there is a program to end
  pid_t program = fork();
  if (program < 0) fail("fork: %s", strerror(errno));
  if (program == 0) {
    sigprocmask(SIG_SETMASK, &none, NULL);
    become(command);
  }
  for (int i = 0; i < 4; i++)
    sigaction(numbers[i], &(struct sigaction){.sa_handler = on_signal, .sa_mask = ours}, NULL);
  struct itimerval limit = {.it_value = {(time_t)seconds, (suseconds_t)((seconds - (double)(time_t)seconds) * 1e6)}};
  setitimer(ITIMER_REAL, &limit, NULL);
  sigprocmask(SIG_SETMASK, &none, NULL);

  int status;
  for (pid_t child; (child = waitpid(-1, &status, 0)) != program;)  // the others are seen off as they end
    if (child < 0 && errno != EINTR) fail("waitpid: %s", strerror(errno));
  sigprocmask(SIG_BLOCK, &ours, NULL);
  end_descendants();
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int main(int count, char** words) {
  bool becomes = false;
  g_timeout = getenv("REHEAP_WINE_TIMEOUT");
  if (count < 2) fail("start it by tools/wine");
  g_tools = words[1];
  char** command = words + 2;
  for (; *command && command[0][0] == '-'; command++)
    if (strcmp(*command, "--become") == 0)
      becomes = true;
    else if (strcmp(*command, "--timeout") == 0 && command[1])
      g_timeout = *++command;
    else
      break;
  if (!*command || **command == '-') fail("use: tools/wine [--timeout SECONDS | --become] PROGRAM [ARGUMENTS]");
  char* end = "";
  double seconds = g_timeout && *g_timeout ? strtod(g_timeout, &end) : 0;
  if (*end || !(seconds >= 0 && seconds < 1e9)) fail("--timeout takes seconds, not '%s'", g_timeout);

  int machine = machine_of(*command);
  if (machine == 0) {
    execv(*command, command);
    fail("%s: %s", *command, strerror(errno));
  }
  struct prefix prefix;
  find_prefix(&prefix, machine);
  enter(&prefix);
  make_ready(&prefix);
  g_program = *command;
  *--command = prefix.loader;  // in the place of the word before, the tools' folder or an option
  if (!becomes) return run(command, seconds);
  execv(*command, command);
  fail("%s: %s", *command, strerror(errno));
}
