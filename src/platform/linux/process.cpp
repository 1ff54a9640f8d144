// The process: environment, files, its end.
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "platform/linux/signals.h"
#include "platform/linux/syscall.h"
#include "platform/platform.h"
#include "platform/refusal.h"

extern "C" char** environ;

// The linker's, of the image that this is part of; none in static programs.
extern "C" [[gnu::weak, gnu::visibility("hidden")]] const ElfW(Dyn) rh_dynamic_section asm("_DYNAMIC");

namespace rh::platform {

#if defined(__aarch64__)
size_t page_size() {
  static constinit std::atomic<size_t> kernels{0};
  size_t size = kernels.load(std::memory_order_relaxed);
  if (RH_UNLIKELY(size == 0)) {
    size = getauxval(AT_PAGESZ);
    if (size == 0) size = kMostPageSize;  // which serves on all
    kernels.store(size, std::memory_order_relaxed);
  }
  return size;
}
#endif

uint64_t random_seed() {
  uint64_t seed = 0;
  if (const void* bytes = reinterpret_cast<const void*>(getauxval(AT_RANDOM)); bytes != nullptr)
    __builtin_memcpy(&seed, bytes, sizeof(seed));
  return mix(seed ^ process_id());
}

uint64_t random_secret() {
  constexpr long kNoWait = 1;  // GRND_NONBLOCK
  uint64_t secret = 0;
  long got = system_call(SYS_getrandom, reinterpret_cast<long>(&secret), sizeof(secret), kNoWait);
  return got == sizeof(secret) ? secret : mix(random_seed() ^ address_of(&secret) ^ now_ms());
}

uintptr_t image_address() {
  // The program headers lie in the first page of the image, however short that is.
  return align_down(getauxval(AT_PHDR), kPageSize);
}

// Of dynamic sections those of programs have an entry for debuggers; a library that is never unloaded says so there.
bool image_may_go() {
  const ElfW(Dyn)* entry = &rh_dynamic_section;
  for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_DEBUG) return false;
    if (entry->d_tag == DT_FLAGS_1 && (entry->d_un.d_val & DF_1_NODELETE) != 0) return false;
  }
  return entry != nullptr;
}

uint64_t process_id() { return static_cast<uint64_t>(system_call(SYS_getpid)); }

namespace {

const char* value_of(const char* entry, const char* name) {
  while (*name != 0 && *entry == *name) ++entry, ++name;
  return *name == 0 && *entry == '=' ? entry + 1 : nullptr;
}

// As the kernel says it: a number below zero is an error's.
long open_file(const char* path, int flags) {
  return system_call(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path), flags | O_CLOEXEC, 0644);
}

// 0, or likewise.
long write_all(int handle, const char* text, size_t length) {
  const QuietWrites quiet;
  while (length != 0) {
    long written = system_call(SYS_write, handle, reinterpret_cast<long>(text), static_cast<long>(length));
    if (written == -EINTR) continue;
    if (is_error(written)) {
      quiet.forget_signal();
      return written;
    }
    if (written == 0) return -ENOSPC;
    text += written;
    length -= static_cast<size_t>(written);
  }
  return 0;
}

// libc has not set `environ` yet when the loader allocates first.
const char* early_environment(const char* name) {
  RH_RARE_ZEROS static char buffer[64 * 1024];
  const long handle = open_file("/proc/self/environ", O_RDONLY);
  if (is_error(handle)) return nullptr;
  size_t length = 0;
  while (length < sizeof(buffer) - 1) {
    long got = system_call(SYS_read, handle, reinterpret_cast<long>(buffer + length),
                           static_cast<long>(sizeof(buffer) - 1 - length));
    if (is_error(got) || got == 0) break;
    length += static_cast<size_t>(got);
  }
  system_call(SYS_close, handle);
  buffer[length] = 0;
  for (const char* entry = buffer; entry < buffer + length;) {
    if (const char* value = value_of(entry, name)) return value;
    while (*entry != 0) ++entry;
    ++entry;
  }
  return nullptr;
}

}  // namespace

const char* environment(const char* name) {
  if (getauxval(AT_SECURE) != 0) return nullptr;
  if (environ == nullptr) return early_environment(name);
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (const char* value = value_of(*entry, name)) return value;
  return nullptr;
}

void each_variable(void (*visit)(const char* entry)) {
  if (environ == nullptr || getauxval(AT_SECURE) != 0) return;
  for (char** entry = environ; *entry != nullptr; ++entry) visit(*entry);
}

// A program that has closed its stderr gets that number for the next file it opens, which no message may spoil. What
// others are not to inherit is no stderr; but a pipe or a terminal may be.
static bool is_data_file(int handle) {
  return system_call(SYS_fcntl, handle, F_GETFD) == FD_CLOEXEC &&
         !is_error(system_call(SYS_lseek, handle, 0, SEEK_CUR));
}

void write_error(const char* text, size_t length) {
  if (!is_data_file(STDERR_FILENO)) write_all(STDERR_FILENO, text, length);
}

// To open a pipe that nobody reads would wait, and keep the process from ending: that is refused instead.
FileWriter::FileWriter(const char* path, How how) {
  const long opened = open_file(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | (how == How::replace ? O_TRUNC : 0));
  if (is_error(opened)) {
    refusal_ = platform::refusal(static_cast<int>(-opened));
    return;
  }
  handle_ = opened;
  system_call(SYS_fcntl, handle_, F_SETFL, O_WRONLY | O_APPEND);
}

FileWriter::~FileWriter() {
  if (is_open()) system_call(SYS_close, handle_);
}

void FileWriter::write(const char* text, size_t length) {
  if (!is_whole()) return;
  if (const long failed = write_all(static_cast<int>(handle_), text, length); failed != 0)
    refusal_ = platform::refusal(static_cast<int>(-failed));
}

void abort_process() { abort(); }

void end_process(int code) { _exit(code); }

}  // namespace rh::platform
