// A profile by the kernel's own sampler: the command, its threads and its children, each 1/hz of a second that they
// run.
#pragma once

#include <linux/perf_event.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <vector>

#include "runner/lines.h"
#include "runner/linux/modules.h"

namespace runner {

class Perf {
 public:
  // Whether the kernel lets us.
  static bool allowed(int hz);

  // Begins when the process becomes another program. Throws Failure.
  Perf(pid_t process, int hz);
  ~Perf();
  Perf(const Perf&) = delete;
  Perf& operator=(const Perf&) = delete;

  // Takes what the kernel has written; to be called several times a second.
  void drain();

  Profile finish();

 private:
  // One ring for each processor: the kernel writes, we read.
  struct Ring {
    int file;
    perf_event_mmap_page* head;
    std::size_t size;  // of the data, which follow the first page
  };

  bool add_ring(pid_t process, int processor);
  void read(Ring& ring);
  void account_until(std::uint64_t time);
  void account(const std::vector<char>& record);

  const int hz_;
  std::vector<Ring> rings_;
  std::multimap<std::uint64_t, std::vector<char>> pending_;  // records, headers and all, by time
  std::int64_t lost_ = 0;
  Modules modules_;
};

}  // namespace runner
