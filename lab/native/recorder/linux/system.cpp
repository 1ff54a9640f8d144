// stream/system.h on Linux: the trace file, its chunks, and what a fork and a thread's end need.
//
// No descriptor is kept: programs close those that they do not know, and open others under the same number.

#include "stream/system.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "linux/settings.h"
#include "linux/stacks/source.h"
#include "stream/clock.h"
#include "stream/recorder.h"
#include "stream/stream.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace recorder {

constinit thread_local ThreadSlot t_slot = {&g_no_stream, 0, 0, false};

namespace {

constinit char g_file[PATH_MAX];  // of this process

uint64_t nanoseconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// Reads at most `room` bytes, and says how many.
size_t read_file(const char* path, char* to, size_t room) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t got = read(file, to, room);
  close(file);
  return got < 0 ? 0 : static_cast<size_t>(got);
}

void say(const char* what, const char* more) {
  char line[PATH_MAX + 200];
  int length =
      snprintf(line, sizeof line, "reheap record: process %ld: %s%s\n", static_cast<long>(getpid()), what, more);
  if (length > 0 && write(2, line, static_cast<size_t>(length)) < 0) return;
}

// ---- fork and threads -------------------------------------------------------------------------

constinit uint64_t g_fork_ticks = 0;
constinit pthread_key_t g_key;
constinit bool g_has_key = false;
constinit thread_local int t_rounds __attribute__((tls_model("initial-exec"))) = 0;

void before_fork() { g_fork_ticks = ticks_now(); }

// Destructors run in rounds while there are any; the last round is ours, because others' give memory back.
void thread_round(void* slot) {
  if (++t_rounds < PTHREAD_DESTRUCTOR_ITERATIONS)
    pthread_setspecific(g_key, slot);
  else
    thread_ended();
}

__attribute__((constructor)) void prepare() {
  pthread_atfork(before_fork, nullptr, nullptr);
  process_started();
}

__attribute__((constructor)) void begin() { process_began(); }
__attribute__((destructor)) void finish() { process_ended(); }

// ---- the file ---------------------------------------------------------------------------------

int create(const char* path) { return open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644); }

// Whether the first file is that of this process before it replaced itself.
bool was_first() {
  trace::FileHeader header;
  size_t got = read_file(settings().path, reinterpret_cast<char*>(&header), sizeof header);
  return got == sizeof header && header.process == static_cast<uint64_t>(getpid());
}

// Leaves its name in g_file. -1 with errno 0: this process is not to be recorded.
int create_file() {
  strcpy(g_file, settings().path);
  int file = create(g_file);
  if (file >= 0 || errno != EEXIST) return file;
  if (!settings().children && !was_first()) {
    errno = 0;
    return -1;
  }
  for (int count = 0; count != 10000; ++count) {
    name_of_child(g_file, settings().path, getpid(), count);
    file = create(g_file);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

// Makes a part of the file take room on the disk. 0, or the error.
int reserve(int file, uint64_t offset, uint64_t bytes) {
  rlimit most;
  if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY && offset + bytes > most.rlim_cur)
    return EFBIG;  // the kernel would send a signal
  if (fallocate(file, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0) return 0;
  if (errno != EOPNOTSUPP) return errno;
  static const char zeros[4096] = {};
  for (uint64_t end = offset + bytes; offset < end; offset += sizeof zeros) {
    ssize_t done = pwrite(file, zeros, sizeof zeros, static_cast<off_t>(offset));
    if (done != static_cast<ssize_t>(sizeof zeros)) return done < 0 ? errno : ENOSPC;
  }
  return 0;
}

// Maps a part of the file that was reserved, for this process alone. Null with errno.
void* map_part(int file, uint64_t offset, size_t bytes) {
  errno = reserve(file, offset, bytes);
  if (errno) return nullptr;
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
  if (at == MAP_FAILED) return nullptr;
  madvise(at, bytes, MADV_DONTFORK);
  return at;
}

void describe_process(trace::FileHeader& header, uint64_t page) {
  header.header_bytes = static_cast<uint32_t>(page < sizeof header ? sizeof header : page);
  header.page_bytes = static_cast<uint32_t>(page);
  header.process = static_cast<uint64_t>(getpid());
  header.parent = static_cast<uint64_t>(getppid());
  strcpy(header.system, "linux");
  header.command_bytes =
      static_cast<uint32_t>(read_file("/proc/self/cmdline", header.command, sizeof header.command - 1));
}

#if defined(__x86_64__) || defined(__i386__)
// The kernel takes the counter off this list when it has seen cores differ.
bool kernel_trusts_counter() {
  char names[256];
  size_t got = read_file("/sys/devices/system/clocksource/clocksource0/available_clocksource", names, sizeof names - 1);
  names[got] = 0;
  return got == 0 || strstr(names, "tsc");
}
#endif

}  // namespace

uint64_t monotonic_nanoseconds() { return nanoseconds(CLOCK_MONOTONIC); }

namespace system {

bool ready() { return environ != nullptr; }

bool even_counter() {
#if defined(__x86_64__) || defined(__i386__)
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && (edx & 1u << 8) && kernel_trusts_counter();
#else
  return false;
#endif
}

uint64_t time_of_day_nanoseconds() { return nanoseconds(CLOCK_REALTIME); }

uint64_t cpu_nanoseconds() { return nanoseconds(CLOCK_PROCESS_CPUTIME_ID); }

uint64_t process_id() { return static_cast<uint64_t>(getpid()); }

StackSource stack_source() {
  if (!settings().stacks) return {};
  choose_next();
  const StackSource source = begin_stacks(settings().stack_bytes);
  if (!source.take) say("its stacks are not recorded: there is no memory for what they need", "");
  return source;
}

void* memory_of_this_process(size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  if (madvise(at, bytes, MADV_WIPEONFORK) == 0) return at;
  say("not recorded: this kernel is older than 4.14", "");
  munmap(at, bytes);
  return nullptr;
}

// glibc's since 2.32, which translates nothing.
extern "C" __attribute__((weak)) const char* strerrordesc_np(int error) noexcept;

const char* words_of(int error) { return strerrordesc_np ? strerrordesc_np(error) : strerror(error); }

trace::FileHeader* open_trace() {
  if (!*settings().path) return nullptr;
  int file = create_file();
  if (file < 0) {
    if (errno) say("not recorded: cannot create the trace file: ", words_of(errno));
    return nullptr;
  }
  auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t bytes = page < trace::kHeaderBytes ? trace::kHeaderBytes : page;
  auto* header = static_cast<trace::FileHeader*>(map_part(file, 0, bytes));
  if (!header) {
    say("not recorded: cannot write the trace file: ", words_of(errno));
    unlink(g_file);
  }
  close(file);
  if (header) describe_process(*header, page);
  return header;
}

uint64_t limit() { return settings().limit; }

Chunk map_chunk(uint64_t offset) {
  int file = open(g_file, O_RDWR | O_CLOEXEC);
  if (file < 0) return {nullptr, trace::Stopped::kFailed};
  void* memory = map_part(file, offset, trace::kChunkBytes);
  bool full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
  close(file);
  return {memory, full ? trace::Stopped::kDiskFull : trace::Stopped::kFailed};
}

void unmap_chunk(void* memory) { munmap(memory, trace::kChunkBytes); }

void say_stopped(trace::Stopped reason) {
  switch (reason) {
  case trace::Stopped::kNot: return;
  case trace::Stopped::kLimit: return say("its trace reached the size limit; the rest is not recorded: ", g_file);
  case trace::Stopped::kDiskFull: return say("no room left on the disk; the rest is not recorded: ", g_file);
  case trace::Stopped::kFailed: return say("cannot go on with its trace; the rest is not recorded: ", g_file);
  }
}

uint64_t fork_ticks() { return g_fork_ticks; }

void yield() { sched_yield(); }

void watch_thread() {
  if (!g_has_key) g_has_key = pthread_key_create(&g_key, thread_round) == 0;
  if (g_has_key) pthread_setspecific(g_key, &t_slot);
}

static_assert(sizeof(sigset_t) > sizeof(uint64_t));

Quiet::Quiet() {
  int error = errno, cancel;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
  saved_[0] = static_cast<uint64_t>(error);
  saved_[1] = static_cast<uint64_t>(cancel);
  memcpy(&saved_[2], &before, sizeof saved_[2]);  // the kernel's mask has 64 signals
}

Quiet::~Quiet() {
  sigset_t before;
  sigemptyset(&before);
  memcpy(&before, &saved_[2], sizeof saved_[2]);
  pthread_setcancelstate(static_cast<int>(saved_[1]), nullptr);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = static_cast<int>(saved_[0]);
}

}  // namespace system
}  // namespace recorder
