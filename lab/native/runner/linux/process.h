// One living process, seen through its files in /proc, which are kept open: they cannot come to mean another process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace runner {

// A file of /proc that is read again and again.
class ProcFile {
 public:
  ProcFile(pid_t process, const char* name);
  ~ProcFile();
  ProcFile(const ProcFile&) = delete;
  ProcFile& operator=(const ProcFile&) = delete;

  bool is_open() const { return file_ >= 0; }
  // Its text from there on so far as it fits, and how long that is; 0: at the end, or the process has gone.
  std::size_t read(char* text, std::size_t size, std::size_t from = 0) const;
  // The same of what is no text.
  std::size_t read_raw(void* bytes, std::size_t size, std::size_t from) const;

 private:
  int file_;
};

// The children that one thread has given birth to or, if it is the runner's, adopted.
void add_children(const ProcFile& file, std::vector<pid_t>& children);

// The highest that the resident memory of a thread's process has been; -1 when unknown.
std::int64_t peak_kib(pid_t thread);

// A process's share of what is resident: a page that n processes have counts an nth. -1 when unknown. The kernel walks
// all its pages for it, and meanwhile the process cannot map any.
std::int64_t share_of_resident_kib(pid_t process);

class Process {
 public:
  explicit Process(pid_t id);

  bool is_open() const { return stat_.is_open() && statm_.is_open(); }
  // Brings the figures up to date; false when the process has gone.
  bool look();

  void add_children(std::vector<pid_t>& children) const { runner::add_children(children_, children); }
  // The same for all threads: dear when there are many.
  void add_children_of_threads(std::vector<pid_t>& children) const;

  const pid_t id;
  pid_t parent = 0;
  std::string name;
  bool ended = false;  // and not yet waited for
  std::int64_t began_ns = 0;
  std::int64_t threads = 0;
  std::int64_t rss_kib = 0;
  std::int64_t commit_kib = 0;   // private writable memory
  std::int64_t own_us = 0;       // processor time
  std::int64_t children_us = 0;  // that of the children waited for
  std::int64_t user_us = 0, system_us = 0, minor_faults = 0, major_faults = 0;

 private:
  bool look_at_stat();
  bool look_at_statm();
  void look_at_clock();
  bool borrows_memory(const char* statm);
  bool is_memory_of(pid_t other, const char* statm) const;

  ProcFile stat_, statm_, children_;
  bool has_memory_ = false;  // its memory is known to be its own
};

}  // namespace runner
