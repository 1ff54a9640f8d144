#include "runner/linux/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runner/linux/clock.h"

namespace runner {

namespace {

std::string path_of(pid_t process, const char* name) { return "/proc/" + std::to_string(process) + "/" + name; }

std::string path_of_children(const char* thread) { return "task/" + std::string(thread) + "/children"; }

std::int64_t ticks_to_us(std::uint64_t ticks) {
  static const long kPerSecond = sysconf(_SC_CLK_TCK);
  return static_cast<std::int64_t>(ticks) * 1'000'000 / kPerSecond;
}

std::int64_t pages_to_kib(std::int64_t pages) {
  static const long kPageKib = sysconf(_SC_PAGESIZE) / 1024;
  return pages * kPageKib;
}

// The figure behind a word at the beginning of a line; -1: there is none.
std::int64_t kib_in(const ProcFile& file, const char* word) {
  char text[4096];
  const char* line = file.read(text, sizeof text) > 0 ? std::strstr(text, word) : nullptr;
  return line ? std::strtoll(line + std::strlen(word), nullptr, 10) : -1;
}

}  // namespace

ProcFile::ProcFile(pid_t process, const char* name)
    : file_(open(path_of(process, name).c_str(), O_RDONLY | O_CLOEXEC)) {}

ProcFile::~ProcFile() {
  if (file_ >= 0) close(file_);
}

std::size_t ProcFile::read(char* text, std::size_t size, std::size_t from) const {
  const std::size_t length = read_raw(text, size - 1, from);
  text[length] = 0;
  return length;
}

std::size_t ProcFile::read_raw(void* bytes, std::size_t size, std::size_t from) const {
  const ssize_t length = pread(file_, bytes, size, static_cast<off_t>(from));
  return length > 0 ? static_cast<std::size_t>(length) : 0;
}

// The kernel gives whole numbers only, about a page at a time.
void add_children(const ProcFile& file, std::vector<pid_t>& children) {
  char text[8192];
  for (std::size_t at = 0, length; (length = file.read(text, sizeof text, at)) > 0; at += length)
    for (char *word = text, *end; *word; word = end + (*end == ' ')) {
      const long child = std::strtol(word, &end, 10);
      if (end == word) return;
      children.push_back(static_cast<pid_t>(child));
    }
}

Process::Process(pid_t process)
    : id(process), stat_(process, "stat"), statm_(process, "statm"),
      children_(process, path_of_children(std::to_string(process).c_str()).c_str()) {}

bool Process::look() {
  look_at_clock();  // by number: what follows tells whether that was still this process
  if (!look_at_stat()) return false;
  if (ended) return true;
  return look_at_statm();
}

void Process::look_at_clock() {
  const std::int64_t used = used_by_ns(id);
  own_us = used < 0 ? -1 : used / 1000;
}

bool Process::look_at_stat() {
  char text[1024];
  if (stat_.read(text, sizeof text) == 0) return false;
  const char* open = std::strchr(text, '(');
  const char* close = std::strrchr(text, ')');  // a name may contain anything
  if (!open || !close) return false;
  name.assign(open + 1, close);
  char state;
  std::uint64_t minor, major, user, system, child_user, child_system, began;
  int found =
      std::sscanf(close + 1,
                  " %c %d %*d %*d %*d %*d %*u %" SCNu64 " %*u %" SCNu64 " %*u %" SCNu64 " %" SCNu64 " %" SCNu64
                  " %" SCNu64 " %*d %*d %" SCNd64 " %*d %" SCNu64,
                  &state, &parent, &minor, &major, &user, &system, &child_user, &child_system, &threads, &began);
  if (found != 10) return false;
  began_ns = ticks_to_us(began) * 1000;
  ended = state == 'Z' || state == 'X';
  minor_faults = static_cast<std::int64_t>(minor);
  major_faults = static_cast<std::int64_t>(major);
  user_us = ticks_to_us(user);
  system_us = ticks_to_us(system);
  children_us = ticks_to_us(child_user) + ticks_to_us(child_system);
  if (own_us < 0) own_us = user_us + system_us;
  return true;
}

bool Process::look_at_statm() {
  char text[256];
  if (statm_.read(text, sizeof text) == 0) return false;
  std::int64_t all, resident, data;
  const char* format = "%" SCNd64 " %" SCNd64 " %*d %*d %*d %" SCNd64;
  if (std::sscanf(text, format, &all, &resident, &data) != 3) return false;
  if (all == 0) ended = true;  // it has given its memory back, and is about to end
  const bool counted = !borrows_memory(text);
  rss_kib = counted ? pages_to_kib(resident) : 0;
  commit_kib = counted ? pages_to_kib(data) : 0;
  return true;
}

// Between vfork and exec a process lives in its parent's memory, which must not be counted twice.
bool Process::borrows_memory(const char* statm) {
  if (!has_memory_) has_memory_ = !is_memory_of(parent, statm);
  return !has_memory_;
}

// Containers often refuse kcmp. Then equal figures tell: a child by fork has other ones, as it starts with fewer pages.
bool Process::is_memory_of(pid_t other, const char* statm) const {
  const long order = syscall(SYS_kcmp, id, other, KCMP_VM, 0, 0);
  if (order >= 0) return order == 0;
  char text[256];
  return ProcFile(other, "statm").read(text, sizeof text) > 0 && std::strcmp(text, statm) == 0;
}

void Process::add_children_of_threads(std::vector<pid_t>& children) const {
  DIR* folder = opendir(path_of(id, "task").c_str());
  if (!folder) return;
  while (const dirent* entry = readdir(folder))
    if (entry->d_name[0] != '.') runner::add_children(ProcFile(id, path_of_children(entry->d_name).c_str()), children);
  closedir(folder);
}

std::int64_t peak_kib(pid_t thread) { return kib_in(ProcFile(thread, "status"), "\nVmHWM:"); }

std::int64_t share_of_resident_kib(pid_t process) { return kib_in(ProcFile(process, "smaps_rollup"), "\nPss:"); }

}  // namespace runner
