// What control groups say about memory: version 1 and 2, whatever they are nested in.
#pragma once

#include "platform/platform.h"

namespace rh::platform::cgroup {

// How files are read; the system's, or a test's.
struct Files {
  static constexpr intptr_t kNone = -1, kFailed = -2;
  intptr_t (*open)(const char* path);  // kNone: there is none; kFailed: there may be
  size_t (*read)(intptr_t file, char* to, size_t size);
  void (*close)(intptr_t file);
  bool failed = false;  // set when there was a failure
};

// As platform::read_grant.
Grant read_grant(Files& files, uint64_t held);

// As platform::is_under_pressure: whether this process's group, or one above it, came to its limit since, or threads of
// the group or of the machine waited for memory.
bool is_under_pressure(Files& files);

}  // namespace rh::platform::cgroup
