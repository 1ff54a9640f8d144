// A profile as pprof reads it: https://github.com/google/pprof/blob/main/proto/profile.proto, in the form of gzip.
#pragma once

#include "profile/profile.h"

namespace rh::profile {

enum class Written : uint8_t { done, no_file, no_memory };

// Replaces the file by what is known so far. May be called in a handler of a signal.
Written write(const char* path);

}  // namespace rh::profile
