// Accounts for every program of every process that the command starts: when it ran, and what it used.
//
// A program is what a process is from one exec to the next, or to its end; what forks and does not exec is one too. The
// kernel's figures of a process do not tell them apart, so each process is stopped where it is born, where it becomes
// another program, and where a thread of it ends.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "runner/lines.h"
#include "runner/linux/tracer.h"

namespace runner {

class Accountant : public Tracer {
 public:
  // Throws Failure when the command may not be followed.
  explicit Accountant(pid_t command, const char* purpose = "--account", int more = 0);

  void ended(pid_t thread) override;

  // To be called now and then: sees what each process holds when it holds most.
  void look();

  // What still runs is told as far as it came. In the order they were first seen.
  std::vector<Program> finish();

 private:
  struct Running {
    std::size_t program;  // in which place of programs_
    std::size_t first;    // of the programs that this process has been
    std::int64_t used_before_ns;
    std::int64_t seen_kib = 0;  // of private memory, when its holdings were last looked at
  };

  void born(pid_t thread, pid_t parent) override;
  void replaced(pid_t process) override;
  void leaving(pid_t thread) override;

  Running& running(pid_t process);
  Running& begin(pid_t process, bool by_exec, std::int64_t used_ns);
  void reckon(Running& one, pid_t process);
  void weigh(Running& one, pid_t process, std::int64_t growth_kib);

  std::vector<Program> programs_;
  std::unordered_map<pid_t, Running> running_;
};

}  // namespace runner
