// Follows the command and all that it starts by ptrace: to count calls, or to see where threads are.
//
// Both cost the command time, so no other figure of such a run means much.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runner/lines.h"
#include "runner/linux/modules.h"
#include "runner/linux/process.h"

namespace runner {

class Tracer {
 public:
  virtual ~Tracer() = default;

  // Somebody whom the runner follows has stopped, with this status of wait4.
  void stopped(pid_t thread, int status);
  virtual void ended(pid_t) {}

 protected:
  // Throws Failure. `more` are ptrace's options beside those that follow children.
  Tracer(pid_t command, const char* purpose, int more);

  virtual void called(unsigned long) {}
  virtual void born(pid_t) {}
  virtual void replaced(pid_t) {}     // by another program
  virtual void interrupted(pid_t) {}  // as we had asked
};

// Counts the calls by which memory is had from the system. A filter in the kernel stops the command at those alone.
class CallCounter : public Tracer {
 public:
  explicit CallCounter(pid_t command);

  // To be run in the command's process before it becomes the command; needs the tracer in place. False, with errno,
  // when the kernel does not want it.
  static bool install_filter();

  // Nothing when there were calls that cannot be told apart: those of a program for another kind of processor.
  std::vector<std::pair<std::string, std::int64_t>> counts() const;

 private:
  void called(unsigned long kind) override;

  std::vector<std::int64_t> counts_;
  bool foreign_ = false;
};

// A profile by stopping threads, for where the kernel's sampler is not allowed.
class Stopper : public Tracer {
 public:
  Stopper(pid_t command, int hz);

  // Stops every thread that has run for another 1/hz of a second; to be called that often.
  void tick();

  std::int64_t interval_ns() const;
  void ended(pid_t thread) override { threads_.erase(thread); }
  Profile finish() const { return modules_.profile("suspend", hz_); }

 private:
  struct Thread {
    explicit Thread(pid_t id);
    std::int64_t used_ns() const;

    pid_t process;
    ProcFile times;
    std::int64_t accounted_ns;  // so much of its time
    std::int64_t due = 0;       // samples that the next stop stands for
  };

  void born(pid_t thread) override;
  void replaced(pid_t process) override;
  void interrupted(pid_t thread) override;

  const int hz_;
  std::unordered_map<pid_t, Thread> threads_;
  Modules modules_;
};

}  // namespace runner
