// `reheap patch` and `reheap unpatch`.
#pragma once

#include "patch.h"

namespace rh::command {

struct PatchOptions {
  std::string file;
  std::string output;  // empty: in the file's place
  PatchRequest request;
  bool copy_library = false;  // puts reheap.dll beside the program
};

// Give the exit code.
int patch(const PatchOptions& options);
int unpatch(const PatchOptions& options);

}  // namespace rh::command
