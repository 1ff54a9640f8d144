// What the process may hold, and whether memory is short.
#include <errno.h>
#include <fcntl.h>
#include <linux/sysinfo.h>

#include "platform/linux/cgroup.h"
#include "platform/linux/syscall.h"

namespace rh::platform {

namespace {

intptr_t open_to_read(const char* path) {
  long file = system_call(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path), O_RDONLY | O_CLOEXEC);
  if (!is_error(file)) return file;
  bool none = file == -ENOENT || file == -ENOTDIR || file == -EACCES;
  return none ? cgroup::Files::kNone : cgroup::Files::kFailed;
}

size_t read_some(intptr_t file, char* to, size_t size) {
  long got = -EINTR;
  while (got == -EINTR) got = system_call(SYS_read, file, reinterpret_cast<long>(to), static_cast<long>(size));
  return is_error(got) ? 0 : static_cast<size_t>(got);
}

void close_file(intptr_t file) { system_call(SYS_close, file); }

cgroup::Files real_files() { return {open_to_read, read_some, close_file}; }

}  // namespace

Grant read_grant(uint64_t held) {
  cgroup::Files files = real_files();
  return cgroup::read_grant(files, held);
}

uint64_t machine_memory() {
  struct sysinfo info = {};
  if (is_error(system_call(SYS_sysinfo, reinterpret_cast<long>(&info)))) return 0;
  return uint64_t{info.totalram} * info.mem_unit;
}

bool is_under_pressure() {
  cgroup::Files files = real_files();
  return cgroup::is_under_pressure(files);
}

}  // namespace rh::platform
