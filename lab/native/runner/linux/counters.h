// Events that the kernel counts for the command, its threads and its children: instructions, cycles.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "runner/lines.h"

namespace runner {

class Counters {
 public:
  // Counts from when the process becomes another program. Whatever the kernel does not count is left out.
  Counters(pid_t process, const std::vector<std::string>& events);
  ~Counters();
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;

  static bool knows(const std::string& event);

  // In the order asked for.
  std::vector<Count> counts() const;

 private:
  struct File {
    std::string event;
    int number;
  };
  std::vector<File> files_;
};

}  // namespace runner
