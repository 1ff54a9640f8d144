// `reheap profile`: a profile of a process that runs on reheap already.
#pragma once

#include <cstdint>
#include <string>

namespace rh::command {

struct ProfileOptions {
  std::uint32_t process = 0;
  double seconds = 30;
  std::uint64_t rate = 0;  // bytes; 0: as the process says
  std::string file;
};

// Gives the exit code. Throws Failure when there is none.
int profile(const ProfileOptions& options);

}  // namespace rh::command
