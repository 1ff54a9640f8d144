// Counts the calls by which memory is had from the system. A filter in the kernel stops the command at those alone, and
// where the processes are accounted for.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runner/linux/accountant.h"

namespace runner {

class CallCounter : public Accountant {
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

}  // namespace runner
