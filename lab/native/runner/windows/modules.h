// The files that a process has loaded.
#pragma once

#include <windows.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runner/lines.h"

namespace runner {

struct LoadedModule {
  std::uintptr_t begin, end;
  std::string path;
};

// Empty at first, and when the process is over: the loader's list is its own.
std::vector<LoadedModule> modules_of(HANDLE process);

// All that were seen, by looking until a while brings no more.
class ModuleLog {
 public:
  explicit ModuleLog(HANDLE process) : process_(process) {}

  // Whether there is a point in looking again.
  bool look();
  const std::vector<SeenModule>& seen() const { return seen_; }

 private:
  bool knows(const std::string& path) const;

  HANDLE process_;
  std::vector<SeenModule> seen_;
  int looks_without_news_ = 0;
};

}  // namespace runner
