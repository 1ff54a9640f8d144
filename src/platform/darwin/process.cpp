// The process: clock, environment, files, its end; and what the machine has.
#include <crt_externs.h>
#include <fcntl.h>
#include <mach-o/dyld.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/sysctl.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "platform/darwin/system.h"
#include "platform/platform.h"
#include "platform/refusal.h"

namespace rh::platform {

uint64_t now_ms() { return clock_gettime_nsec_np(CLOCK_UPTIME_RAW_APPROX) / 1000000; }

unsigned node() { return 0; }

uint64_t random_secret() {
  KeepErrno keep;
  uint64_t secret = 0;
  if (getentropy(&secret, sizeof(secret)) == 0) return secret;
  // The addresses of the stack and the libraries are random too.
  return mix(process_id() ^ address_of(&secret)) ^ mix(now_ms() ^ reinterpret_cast<uintptr_t>(&getentropy));
}

uint64_t random_seed() { return random_secret(); }

// The library has itself kept (entry/darwin/zone.cpp).
bool image_may_go() { return false; }

uintptr_t image_address() { return reinterpret_cast<uintptr_t>(_NSGetMachExecuteHeader()); }

uint64_t process_id() { return static_cast<uint64_t>(getpid()); }

// ---- limits -----------------------------------------------------------------------------------

namespace {

template <typename Number> Number ask(const char* name) {
  KeepErrno keep;
  Number number = 0;
  size_t size = sizeof(number);
  return sysctlbyname(name, &number, &size, nullptr, 0) == 0 && size == sizeof(number) ? number : 0;
}

}  // namespace

// Nothing here limits what a process may hold.
Grant read_grant(uint64_t) { return {}; }

uint64_t machine_memory() { return ask<uint64_t>("hw.memsize"); }

bool is_under_pressure() {
  constexpr int kWarning = 2;  // 1: there is none, 4: it is critical
  return ask<int>("kern.memorystatus_vm_pressure_level") >= kWarning;
}

// ---- environment ------------------------------------------------------------------------------

namespace {

const char* value_of(const char* entry, const char* name) {
  while (*name != 0 && *entry == *name) ++entry, ++name;
  return *name == 0 && *entry == '=' ? entry + 1 : nullptr;
}

// Null while the environment is not set up yet, and where it is not to be trusted.
char** entries() { return issetugid() == 0 ? *_NSGetEnviron() : nullptr; }

}  // namespace

const char* environment(const char* name) {
  for (char** entry = entries(); entry != nullptr && *entry != nullptr; ++entry)
    if (const char* value = value_of(*entry, name)) return value;
  return nullptr;
}

void each_variable(void (*visit)(const char* entry)) {
  for (char** entry = entries(); entry != nullptr && *entry != nullptr; ++entry) visit(*entry);
}

// ---- files ------------------------------------------------------------------------------------

namespace {

bool write_all(int handle, const char* text, size_t length) {
  while (length != 0) {
    const ssize_t written = ::write(handle, text, length);
    if (written < 0 && errno == EINTR) continue;
    if (written == 0) errno = ENOSPC;
    if (written <= 0) return false;
    text += written;
    length -= static_cast<size_t>(written);
  }
  return true;
}

int open_file(const char* path, FileWriter::How how) {
  const int other = how == FileWriter::How::replace ? O_TRUNC : 0;
  // To open a pipe that nobody reads would wait, and keep the process from ending: that is refused instead.
  const int file = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC | other, 0644);
  if (file >= 0) ::fcntl(file, F_SETFL, O_WRONLY | O_APPEND);
  return file;
}

}  // namespace

void write_error(const char* text, size_t length) {
  KeepErrno keep;
  write_all(STDERR_FILENO, text, length);
}

FileWriter::FileWriter(const char* path, How how) {
  KeepErrno keep;
  handle_ = open_file(path, how);
  if (!is_open()) refusal_ = platform::refusal(errno);
}

FileWriter::~FileWriter() {
  KeepErrno keep;
  if (is_open()) ::close(static_cast<int>(handle_));
}

void FileWriter::write(const char* text, size_t length) {
  KeepErrno keep;
  if (is_whole() && !write_all(static_cast<int>(handle_), text, length)) refusal_ = platform::refusal(errno);
}

void abort_process() { abort(); }

void end_process(int code) { _exit(code); }

// ---- tools that watch from outside --------------------------------------------------------------

void probe_allocated(const void*, uint64_t, uint64_t) {}
void probe_freed(const void*) {}
void probe_misuse(const char*, uintptr_t) {}

}  // namespace rh::platform
