// What the functions of this folder share.
#pragma once

#include <errno.h>

namespace rh::platform {

// Functions of the C library's that fail write errno, which the program may be about to read.
class KeepErrno {
 public:
  KeepErrno() : error_(errno) {}
  ~KeepErrno() { errno = error_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  int error_;
};

}  // namespace rh::platform
