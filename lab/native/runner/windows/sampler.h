// Where the time goes, by module: the threads of a job's processes are stopped for a moment, many times a second, and
// the module that each of them is in is counted. Only threads that have used time since they were last looked at count.
#pragma once

#include <windows.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "modules.h"

namespace runner {

class Sampler {
 public:
  explicit Sampler(HANDLE job) : job_(job) {}

  void sample();

  // What a thread waits for in the system, or does there.
  static constexpr const char* kKernel = "[kernel]";
  const std::map<std::string, std::int64_t>& samples() const { return samples_; }
  // Threads that ran and could not be looked at.
  std::int64_t lost() const { return lost_; }

 private:
  struct Process {
    HANDLE handle = nullptr;
    std::vector<LoadedModule> modules;
    unsigned misses = 0;  // samples in none of them since they were read
  };

  void sample(DWORD process, DWORD thread);
  Process& process_of(DWORD id);
  bool has_run(DWORD id, HANDLE thread);
  std::string place(Process& process, std::uintptr_t address);
  const LoadedModule* find(const Process& process, std::uintptr_t address) const;

  HANDLE job_;
  std::map<DWORD, Process> processes_;
  std::map<DWORD, std::uint64_t> time_used_;  // by thread
  std::map<std::string, std::int64_t> samples_;
  std::int64_t lost_ = 0;
};

}  // namespace runner
