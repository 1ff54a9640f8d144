// Which file the code at an address comes from, in each process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

#include "runner/lines.h"

namespace runner {

class Modules {
 public:
  void map(pid_t process, std::uint64_t start, std::uint64_t length, const std::string& path);
  void fork(pid_t child, pid_t parent);
  void forget(pid_t process);  // it ended, or became another program

  // Adds what /proc says is executable there now.
  void read(pid_t process);

  void count(pid_t process, std::uint64_t address, std::int64_t samples = 1);
  void count_kernel() { samples_["[kernel]"]++; }

  // What was counted, but for modules without a sample.
  Profile profile(const char* source, int hz, std::int64_t lost = 0) const;

 private:
  struct Range {
    std::uint64_t end;
    const std::string* path;  // a key of samples_
  };
  using Space = std::map<std::uint64_t, Range>;  // by start; they do not overlap

  const std::string* known(const std::string& path) { return &samples_.try_emplace(path).first->first; }
  const std::string* find(pid_t process, std::uint64_t address);

  std::map<pid_t, Space> spaces_;
  std::map<std::string, std::int64_t> samples_;
  std::map<pid_t, std::int64_t> read_again_at_ns_;
};

}  // namespace runner
