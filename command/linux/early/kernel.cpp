#include "kernel.h"

#include <asm/statfs.h>
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <sys/stat.h>

#if !defined(__x86_64__)
#include <cerrno>
#include <unistd.h>
#endif

namespace rh::command::kernel {
namespace {

constexpr long longest_path = 4096;
constexpr int execute_permission = 1;  // X_OK
constexpr int no_setuid = 2;           // ST_NOSUID

#if defined(__x86_64__)
long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}
#else
// No early start on this machine (entry.cpp): the C library is there.
long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  const long result = syscall(number, a, b, c, d, e, f);
  return result == -1 ? -errno : result;
}
#endif

long address(const void* pointer) { return reinterpret_cast<long>(pointer); }

long status_at(long directory, const char* path, int flags, Status& status) {
  struct statx found;
  const long result = call(__NR_statx, directory, address(path), flags, STATX_BASIC_STATS, address(&found));
  if (result < 0) return result;
  status.mode = found.stx_mode;
  status.user = found.stx_uid;
  status.group = found.stx_gid;
  status.size = found.stx_size;
  return 0;
}

}  // namespace

long status(const char* path, Status& status) { return status_at(AT_FDCWD, path, 0, status); }

long may_execute(const char* path) {
  const long result = call(__NR_faccessat2, AT_FDCWD, address(path), execute_permission, AT_EACCESS);
  if (result != -ENOSYS) return result;
  return call(__NR_faccessat, AT_FDCWD, address(path), execute_permission);
}

long open(const char* path) {
  return call(__NR_openat, AT_FDCWD, address(path), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

void close(long file) { call(__NR_close, file); }

long size(long file, std::uint64_t& bytes) {
  Status found;
  const long result = status_at(file, "", AT_EMPTY_PATH, found);
  bytes = found.size;
  return result;
}

std::size_t read(long file, std::uint64_t offset, void* to, std::size_t size) {
  std::size_t got = 0;
  while (got < size) {
    const long part = call(__NR_pread64, file, address(to) + static_cast<long>(got), static_cast<long>(size - got),
                           static_cast<long>(offset + got));
    if (part <= 0) break;
    got += static_cast<std::size_t>(part);
  }
  return got;
}

long read_folder(long folder, void* to, std::size_t size) {
  return call(__NR_getdents64, folder, address(to), static_cast<long>(size));
}

bool has_attribute(const char* path, const char* name) {
  return call(__NR_getxattr, address(path), address(name), 0, 0) > 0;
}

bool mounted_nosuid(const char* path) {
  struct statfs found;
  return call(__NR_statfs, address(path), address(&found)) == 0 && (found.f_flags & no_setuid) != 0;
}

Str read_link(const char* path) {
  auto* text = static_cast<char*>(keep(longest_path));
  if (!text) return {};
  const long length = call(__NR_readlinkat, AT_FDCWD, address(path), address(text), longest_path - 1);
  if (length <= 0) return {};
  text[length] = '\0';
  return {text, static_cast<std::size_t>(length)};
}

Str working_directory() {
  auto* text = static_cast<char*>(keep(longest_path));
  if (!text) return {};
  const long length = call(__NR_getcwd, address(text), longest_path);
  return length > 1 ? Str(text, static_cast<std::size_t>(length - 1)) : Str();
}

bool privileges_are_fixed() { return call(__NR_prctl, PR_GET_NO_NEW_PRIVS) == 1; }
std::uint32_t user() { return static_cast<std::uint32_t>(call(__NR_getuid)); }
std::uint32_t effective_user() { return static_cast<std::uint32_t>(call(__NR_geteuid)); }
std::uint32_t group() { return static_cast<std::uint32_t>(call(__NR_getgid)); }
std::uint32_t effective_group() { return static_cast<std::uint32_t>(call(__NR_getegid)); }

void* map(std::size_t size) {
  const long result =
      call(__NR_mmap, 0, static_cast<long>(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  return result < 0 && result > -longest_path ? nullptr : reinterpret_cast<void*>(result);
}

long execute(const char* path, char* const* arguments, char* const* environment) {
  return call(__NR_execve, address(path), address(arguments), address(environment));
}

void end(int status) {
  for (;;) call(__NR_exit_group, status);
}

}  // namespace rh::command::kernel
