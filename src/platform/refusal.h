// Why a file was not opened or written, in the words of a message.
#pragma once

#include <errno.h>

namespace rh::platform {

inline constexpr const char* kRefused = "cannot be written";

// `error` is a value of errno.
inline const char* refusal(int error) {
  switch (error) {
  case ENOENT:
  case ENOTDIR: return "cannot be written: there is no such folder";
  case EACCES:
  case EPERM: return "cannot be written: permission denied";
  case EROFS: return "cannot be written: the file system is read-only";
  case EISDIR: return "cannot be written: it is a folder";
  case ENAMETOOLONG: return "cannot be written: its path is too long";
  case EMFILE:
  case ENFILE: return "cannot be written: too many files are open";
  case ENXIO: return "cannot be written: nobody reads the pipe";
  case ENOSPC:
#if defined(EDQUOT)
  case EDQUOT:
#endif
    return "cannot be written: the disk is full";
  case EFBIG: return "cannot be written: files may not be that long (ulimit -f)";
  default: return kRefused;
  }
}

}  // namespace rh::platform
