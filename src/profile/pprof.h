// A profile as pprof reads it: https://github.com/google/pprof/blob/main/proto/profile.proto, in the form of gzip.
#pragma once

#include "profile/profile.h"

namespace rh::profile {

// Replaces the file by what is known so far. Null; or why it could not, in the words of a message. May be called in a
// handler of a signal.
const char* write(const char* path);

}  // namespace rh::profile
