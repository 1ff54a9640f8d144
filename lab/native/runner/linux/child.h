// The command as a child process: made first, told to go when everything that watches it is ready.
//
// It is born by fork, not by vfork: a process starts with its parent's resident memory as its peak, and after fork that
// is only what this small program has written to. What it was is in `floor_kib`.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runner/options.h"

namespace runner {

class Child {
 public:
  using Preparation = std::function<bool()>;  // false: it failed, with errno

  // `prepare` runs in the child just before the command replaces it. Throws Failure.
  explicit Child(const Options& options, const Preparation& prepare = nullptr);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Lets the child become the command.
  void go();

  // Waits until it has. Throws Failure when it could not.
  void confirm(const Options& options);

  // Passes a signal to the command's process group.
  void signal(int number) const;

  pid_t id() const { return id_; }
  std::int64_t started_ns() const { return shared_->started_ns; }
  std::int64_t floor_kib() const { return shared_->floor_kib; }

 private:
  // Written by the child until it becomes the command.
  struct Shared {
    std::int64_t started_ns;
    std::int64_t floor_kib;
    int error;        // errno of what failed
    char failed[32];  // what that was
  };

  [[noreturn]] void become(const Options& options, char** environment, const Preparation& prepare);
  [[noreturn]] void give_up(const char* what);

  Shared* shared_;
  pid_t id_ = 0;
  int go_[2], gone_[2];  // pipes: the parent's word to go; closed as the command takes over
};

}  // namespace runner
