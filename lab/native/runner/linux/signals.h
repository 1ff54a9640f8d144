// The signals that concern the runner, as a file to wait on instead of handlers.
#pragma once

#include <signal.h>
#include <sys/signalfd.h>

#include <functional>

namespace runner {

class Signals {
 public:
  Signals();  // blocks them; Child unblocks them for the command
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int file() const { return file_; }

  // The number of one that came; 0 when there is none.
  int next() const;

 private:
  int file_;
};

}  // namespace runner
