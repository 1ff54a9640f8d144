// Follows the command and all that it starts by ptrace: to account for its processes, to count calls, or to see where
// threads are.
//
// All of it costs the command time, so no other figure of such a run means much.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <unordered_map>

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
  virtual void born(pid_t /*thread*/, pid_t /*parent*/) {}
  virtual void replaced(pid_t /*process*/) {}    // by another program
  virtual void leaving(pid_t /*thread*/) {}      // it still has its memory
  virtual void interrupted(pid_t /*thread*/) {}  // as we had asked
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

  void born(pid_t thread, pid_t parent) override;
  void replaced(pid_t process) override;
  void interrupted(pid_t thread) override;

  const int hz_;
  std::unordered_map<pid_t, Thread> threads_;
  Modules modules_;
};

// The process that a thread belongs to; the number itself when that cannot be told.
pid_t process_of(pid_t thread);

}  // namespace runner
