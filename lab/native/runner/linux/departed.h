// Accounts for the processes that the runner waits for, by what the kernel keeps of them until then. For programs under
// Wine: its processes have no parents that wait for them, so the runner adopts them all; and its server traces them, so
// that no tracer of the runner's could (accountant.h).
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "runner/lines.h"

namespace runner {

class Departed {
 public:
  // Who can be waited for next, having ended; what it was is noted. -1: nobody has.
  pid_t next();

  void ended(pid_t process, const rusage& used);

  // In the order in which they began. Each by its name alone, all that is left of it.
  std::vector<Program> programs();

  // What the first process of that name and those that began later have used together; nothing without it.
  std::optional<End> used_since(const std::string& name);

 private:
  struct One {
    Program program;
    rusage used;
  };
  void sort();

  Program next_;
  std::vector<One> all_;
};

}  // namespace runner
