#include "replay/system.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lab::sys {
namespace {

std::uint64_t nanoseconds(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

timespec timespec_of(std::uint64_t ns) {
  return {.tv_sec = static_cast<time_t>(ns / 1'000'000'000), .tv_nsec = static_cast<long>(ns % 1'000'000'000)};
}

// The first fields of /proc/self/statm, in pages: size, resident. Read without stdio, which allocates.
std::uint64_t statm(int field) {
  static const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  char text[128];
  const ssize_t bytes = pread(file, text, sizeof text - 1, 0);
  if (bytes <= 0) return 0;
  text[bytes] = 0;
  char* at = text;
  std::uint64_t value = 0;
  for (int i = 0; i <= field; ++i) value = std::strtoull(at, &at, 10);
  return value * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

// Of a file of the kernel's, whose lines are of at most a path's length. Read without stdio, which allocates.
template <typename Visit> void visit_lines(const char* path, Visit visit) {
  char text[32 * 1024];
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  std::size_t used = 0;
  for (ssize_t got; (got = read(file, text + used, sizeof text - used)) > 0;) {
    used += static_cast<std::size_t>(got);
    char* line = text;
    while (auto* end = static_cast<char*>(std::memchr(line, '\n', static_cast<std::size_t>(text + used - line)))) {
      *end = 0;
      visit(line);
      line = end + 1;
    }
    used -= static_cast<std::size_t>(line - text);
    std::memmove(text, line, used);
  }
  if (file >= 0) close(file);
}

// What a line that begins with `name` says, in bytes; 0: it begins with something else.
std::uint64_t bytes_of(const char* line, std::string_view name) {
  return std::string_view(line).starts_with(name) ? std::strtoull(line + name.size(), nullptr, 10) * 1024 : 0;
}

// 7f0123456000-7f0123478000 r-xp 00026000 fe:01 1234567     /usr/lib/libc.so.6
bool has_name_of_its_own(const char* mapping) {
  const char* name = std::strpbrk(mapping, "/[");
  return name && std::strncmp(name, "[heap]", 6) != 0 && std::strncmp(name, "[anon", 5) != 0;
}

struct Entry {
  void (*run)(void*);
  void* argument;
};

void* enter(void* stack) {
  const Entry entry = *static_cast<Entry*>(stack);  // at the far end of the stack: long read when that is reached
  entry.run(entry.argument);
  return nullptr;
}

}  // namespace

bool open_file(const char* path, File& file) {
  file.handle = open(path, O_RDONLY | O_CLOEXEC);
  return file.handle >= 0;
}

std::int64_t read_at(File file, void* to, std::size_t bytes, std::uint64_t offset) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got = pread(static_cast<int>(file.handle), static_cast<char*>(to) + done, bytes - done,
                              static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return static_cast<std::int64_t>(done);
}

void* map(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) {
    std::fprintf(stderr, "reheap-replay: no memory for the replayer's own %zu bytes\n", bytes);
    _exit(125);
  }
  return memory;
}

void unmap(void* memory, std::size_t bytes) { munmap(memory, bytes); }

unsigned cores() { return static_cast<unsigned>(sysconf(_SC_NPROCESSORS_ONLN)); }

std::uint64_t now_ns() { return nanoseconds(CLOCK_MONOTONIC); }
std::uint64_t cpu_ns() { return nanoseconds(CLOCK_PROCESS_CPUTIME_ID); }

std::uint64_t cpu_step_ns() { return 1; }

void sleep_until(std::uint64_t ns) {
  const timespec time = timespec_of(ns);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) {}
}

std::uint64_t resident_bytes() { return statm(1); }
std::uint64_t commit_bytes() { return 0; }

std::uint64_t named_bytes() {
  std::uint64_t bytes = 0;
  bool named = false;
  visit_lines("/proc/self/smaps", [&](const char* line) {
    const bool says_something = *line >= 'A' && *line <= 'Z';  // of the mapping that the lines before it begin with
    if (!says_something) named = has_name_of_its_own(line);
    if (named) bytes += bytes_of(line, "Rss:");
  });
  return bytes;
}

bool reset_peak() {
  const int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool reset = write(file, "5", 1) == 1;
  close(file);
  return reset;
}

std::uint64_t peak_resident_bytes() {
  std::uint64_t bytes = 0;
  visit_lines("/proc/self/status", [&](const char* line) { bytes += bytes_of(line, "VmHWM:"); });
  return bytes;
}

void wait(std::atomic<std::uint32_t>& word, std::uint32_t value, std::uint64_t ns) {
  const timespec time = timespec_of(ns);
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, &time, nullptr, 0);
}

void wake(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

void* allocate_aligned(std::size_t size, std::size_t alignment) {
  void* block = nullptr;
  return posix_memalign(&block, std::max(alignment, sizeof block), size) == 0 ? block : nullptr;
}

void* reallocate_aligned(void* block, std::size_t size, std::size_t) { return std::realloc(block, size); }

void free_aligned(void* block) { std::free(block); }

bool start(Thread& thread, void (*run)(void*), void* argument) {
  thread.stack = map(kStackBytes);
  *static_cast<Entry*>(thread.stack) = {run, argument};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, thread.stack, kStackBytes);
  pthread_t handle;
  const int error = pthread_create(&handle, &attributes, enter, thread.stack);
  pthread_attr_destroy(&attributes);
  thread.handle = handle;
  return error == 0;
}

void join(Thread& thread) {
  pthread_join(thread.handle, nullptr);
  unmap(thread.stack, kStackBytes);
  thread = {};
}

}  // namespace lab::sys
